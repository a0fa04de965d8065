//! The client of HTTP: TLS by ring and the roots of the system, no redirects, no hidden attempts, no proxy but the settings'.

use std::sync::Arc;
use std::time::Duration;

use clover_event::payload::endpoint::AuthForm;
use clover_event::payload::endpoint::BaseUrl;
use clover_ground::secret::Secret;
use reqwest::Client;
use reqwest::Proxy;
use reqwest::header::HeaderMap;
use reqwest::header::HeaderName;
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls_platform_verifier::BuilderVerifierExt;

/// How long a connection that nobody uses is kept.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// How long each part of a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect.
    pub connect: Duration,
    /// To the first byte of the answer.
    pub first_byte: Duration,
    /// Between two parts of the answer.
    pub idle: Duration,
    /// In all.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(300),
        }
    }
}

/// Where an endpoint is, and how it is reached.
#[derive(Clone, Debug)]
pub struct Connection {
    /// In which form the key is sent.
    pub auth: AuthForm,
    /// The key; none where none is sent.
    pub key: Option<Secret>,
    /// A proxy. Loopback is never reached through one.
    pub proxy: Option<String>,
    /// How long each part of a call may take.
    pub timeouts: Timeouts,
    /// The base URL.
    pub url: BaseUrl,
    /// Headers that the dialect sends with every request.
    pub headers: &'static [(&'static str, &'static str)],
}

/// Why there is no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The key cannot stand in a header.
    #[error("the key holds characters that no header can hold")]
    Key,
    /// A key is wanted and there is none, or the other way round.
    #[error("the endpoint is registered with auth {auth}, and the settings name {}", if *.given { "a key" } else { "no key" })]
    KeyWanted {
        /// How it is sent.
        auth: AuthForm,
        /// Whether there is one.
        given: bool,
    },
    /// The proxy is none.
    #[error("the proxy is no URL of a proxy")]
    Proxy,
    /// The roots of the system cannot be read.
    #[error("TLS is not ready: {0}")]
    Tls(String),
    /// Something else.
    #[error("the client of HTTP is not ready: {0}")]
    Other(String),
}

/// The headers of every request, the key among them as one that is never shown.
fn headers(of: &Connection) -> Result<HeaderMap, ClientError> {
    let mut map = HeaderMap::new();
    for (name, value) in of.headers {
        map.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    map.insert("accept", HeaderValue::from_static("application/json"));
    map.insert("accept-encoding", HeaderValue::from_static("identity"));
    map.insert("content-type", HeaderValue::from_static("application/json"));
    let wanted = ClientError::KeyWanted {
        auth: of.auth,
        given: of.key.is_some(),
    };
    let (name, key) = match (of.auth, &of.key) {
        (AuthForm::None, None) => return Ok(map),
        (AuthForm::None, Some(_)) | (_, None) => return Err(wanted),
        (AuthForm::ApiKey, Some(key)) => ("api-key", key.clone()),
        (AuthForm::XApiKey, Some(key)) => ("x-api-key", key.clone()),
        (AuthForm::XGoogApiKey, Some(key)) => ("x-goog-api-key", key.clone()),
        (AuthForm::Bearer, Some(key)) => (
            "authorization",
            Secret::new(format!("Bearer {}", key.expose())),
        ),
    };
    let mut value = HeaderValue::from_str(key.expose()).map_err(|_| ClientError::Key)?;
    value.set_sensitive(true);
    map.insert(HeaderName::from_static(name), value);
    Ok(map)
}

/// TLS with ring. Plain http needs no roots.
fn tls(url: &BaseUrl) -> Result<ClientConfig, ClientError> {
    let wrong = |error: rustls::Error| ClientError::Tls(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    if url.is_plain() {
        let none = RootCertStore::empty();
        return Ok(config.with_root_certificates(none).with_no_client_auth());
    }
    let config = config.with_platform_verifier().map_err(wrong)?;
    Ok(config.with_no_client_auth())
}

/// The client of an endpoint.
///
/// # Errors
/// [`ClientError`].
pub fn client(of: &Connection) -> Result<Client, ClientError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls(&of.url)?)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .no_proxy()
        .pool_idle_timeout(POOL_IDLE)
        .connect_timeout(of.timeouts.connect)
        .user_agent(concat!("clover/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(of)?);
    if let Some(proxy) = of.proxy.as_deref().filter(|_| !of.url.is_loopback()) {
        let proxy = Proxy::all(proxy).map_err(|_| ClientError::Proxy)?;
        builder = builder.proxy(proxy);
    }
    let built = builder.build();
    built.map_err(|error| ClientError::Other(error.without_url().to_string()))
}
