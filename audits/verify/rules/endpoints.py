"""Rules of endpoints of models (`schema/ENDPOINTS.md`)."""

from formats.fields import is_loopback


def rule_endpoint(_state, e):
    if e.kind != "endpoint.registered":
        return None
    data, url = e.data, e.data["url"]
    goes_out_plain = url.startswith("http://") and not is_loopback(url)
    if goes_out_plain and not data["insecure"]:
        return "https, or plain http to 127.0.0.0/8 or [::1], or insecure: true", url
    if data["insecure"] and not goes_out_plain:
        return "insecure: true only of plain http to another machine", url
    if "rows" in data["classes"] and not data.get("terms"):
        return "terms, which say what the provider may do with rows", "none"
    return None
