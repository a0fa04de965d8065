//! Model endpoints: where models are asked, in which form, and what they can do.
//! `schema/ENDPOINTS.md` says how each is found.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$line:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$line])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every one, alphabetical.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word in events and on the command line.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|of| of.as_str() == text);
                found.ok_or_else(|| {
                    let all: Vec<_> = Self::ALL.iter().map(|of| of.as_str()).collect();
                    format!("expected one of {}", all.join(", "))
                })
            }
        }
    };
}
pub(crate) use words;

words! {
    /// In which form a key is sent.
    AuthForm {
        /// The header `api-key`.
        ApiKey "api_key",
        /// `Authorization: Bearer`.
        Bearer "bearer",
        /// No key is sent.
        None "none",
        /// The header `x-api-key`.
        XApiKey "x_api_key",
        /// The header `x-goog-api-key`.
        XGoogApiKey "x_goog_api_key",
    }
}

words! {
    /// The form of requests and answers.
    Dialect {
        /// Messages of Anthropic.
        Anthropic "anthropic",
        /// `generateContent` of Gemini.
        Gemini "gemini",
        /// Chat completions of OpenAI, and of what is compatible with them.
        OpenaiChat "openai_chat",
        /// Responses of OpenAI.
        OpenaiResponses "openai_responses",
    }
}

words! {
    /// Whether an endpoint can do something.
    Ability {
        /// It takes the parameter, and the answer does not follow it.
        Ignored "ignored",
        /// It refuses the parameter.
        No "no",
        /// Nobody looked.
        Untested "untested",
        /// The answer follows it.
        Yes "yes",
    }
}

/// The base URL of an endpoint in normal form: `http` or `https`, a host in lower case, a port that is not the usual one, and
/// a path without a slash at its end. No user, no query, no fragment, nothing escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("maxLength" = 2000)))]
pub struct BaseUrl(String);

/// Longest base URL, in bytes.
const URL_LEN_MAX: usize = 2_000;

impl BaseUrl {
    /// `None` where it has another form.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let url = Self(text.into());
        (url.0.len() <= URL_LEN_MAX && url.is_normal()).then_some(url)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its scheme, host, port and path.
    fn parts(&self) -> Option<(&str, &str, Option<&str>, &str)> {
        let (scheme, rest) = self.0.split_once("://")?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        let ended = if place.starts_with('[') {
            place.find(']')? + 1
        } else {
            place.find(':').unwrap_or(place.len())
        };
        let (host, port) = place.split_at(ended);
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':')?),
        };
        Some((scheme, host, port, path))
    }

    fn is_normal(&self) -> bool {
        let Some((scheme, host, port, path)) = self.parts() else {
            return false;
        };
        let usual = match scheme {
            "http" => "80",
            "https" => "443",
            _ => return false,
        };
        let is_port = |port: &str| {
            let number = port.parse::<u16>();
            number.is_ok_and(|of| of > 0 && of.to_string() == port) && port != usual
        };
        is_host(host) && port.is_none_or(is_port) && is_path(path)
    }

    /// Whether it is plain http.
    pub fn is_plain(&self) -> bool {
        self.0.starts_with("http://")
    }

    /// Whether its host is an address of this machine: 127.0.0.0/8 or `::1`. A name never is.
    pub fn is_loopback(&self) -> bool {
        let host = self.parts().map_or("", |(_, host, ..)| host);
        let four = host.parse::<std::net::Ipv4Addr>();
        host == "[::1]" || four.is_ok_and(|of| of.is_loopback())
    }
}

fn is_host(host: &str) -> bool {
    if let Some(six) = host.strip_prefix('[') {
        let six = six.strip_suffix(']').unwrap_or_default();
        let address = six.parse::<std::net::Ipv6Addr>();
        // One form alone: none that writes an address of version 4.
        return !six.contains('.') && address.is_ok_and(|of| of.to_string() == six);
    }
    let is_label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inside) && !label.starts_with('-')
    };
    let labels: Vec<&str> = host.split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    let is_address = host.parse::<std::net::Ipv4Addr>().is_ok();
    labels.iter().all(|label| is_label(label)) && (!is_number || is_address)
}

fn is_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut parts = path.split('/');
    // What stands before the first slash.
    parts.next() == Some("")
        && parts.all(|part| !matches!(part, "" | "." | "..") && part.bytes().all(plain))
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for BaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).ok_or_else(|| D::Error::custom("expected a base URL in normal form"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_one_form() {
        for text in [
            "https://api.openai.com/v1",
            "http://127.0.0.1:8080",
            "http://[::1]:9/v1",
            "https://a-b.example",
        ] {
            assert!(BaseUrl::new(text).is_some(), "{text}");
        }
        for text in [
            "https://api.openai.com/v1/",
            "https://API.openai.com/v1",
            "https://user@api.openai.com",
            "https://api.openai.com:443",
            "http://host:080",
            "https://host?x=1",
            "https://host/a/../b",
            "https://host/a%2fb",
            "https://host#x",
            "ftp://host",
            "https://",
            "http://127.1",
            "http://0x7f.0.0.1.9",
            "http://[::1",
            "http://[::ffff:1.2.3.4]",
            "http://[0:0:0:0:0:0:0:1]",
        ] {
            assert!(BaseUrl::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn loopback_is_an_address_and_never_a_name() {
        let is = |text| BaseUrl::new(text).unwrap().is_loopback();
        assert!(is("http://127.0.0.1:1"));
        assert!(is("http://127.9.9.9"));
        assert!(is("http://[::1]:1"));
        assert!(!is("http://localhost:1"));
        assert!(!is("http://128.0.0.1"));
        assert!(!is("http://127.0.0.1.example"));
    }
}
