//! Base64 in the one spelling that encodes back to itself: of all texts that might be read as some bytes, only their own
//! is accepted.

use base64_simd::Base64;
use base64_simd::STANDARD;
use base64_simd::STANDARD_NO_PAD;

/// Standard alphabet, padded (RFC 4648, section 4).
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode_to_string(bytes)
}

/// Appends what [`encode`] gives.
pub fn encode_append(out: &mut Vec<u8>, bytes: &[u8]) {
    STANDARD.encode_append(bytes, out);
}

/// Standard alphabet, without padding.
pub fn encode_unpadded(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode_to_string(bytes)
}

/// The bytes of a padded text; `None` for every spelling but the canonical one.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    canonical(&STANDARD, text)
}

/// The bytes of a text without padding; `None` for every spelling but the canonical one.
pub fn decode_unpadded(text: &[u8]) -> Option<Vec<u8>> {
    canonical(&STANDARD_NO_PAD, text)
}

fn canonical(form: &Base64, text: &[u8]) -> Option<Vec<u8>> {
    let bytes = form.decode_to_vec(text).ok()?;
    let mut own = Vec::with_capacity(text.len());
    form.encode_append(&bytes, &mut own);
    (own == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_spellings_are_refused() {
        assert_eq!(decode(b"Zm8="), Some(b"fo".to_vec()));
        assert_eq!(decode_unpadded(b"Zm8"), Some(b"fo".to_vec()));
        // Bits beyond the last byte, padding where none is due or none where it is, blanks, the other alphabet.
        for text in [
            &b"Zm9="[..],
            b"Zm8",
            b"Zm8==",
            b"Zm8=\n",
            b" Zm8=",
            b"Z",
            b"Zm-_",
            b"====",
        ] {
            assert_eq!(decode(text), None, "{text:?}");
        }
        for text in [&b"Zm9"[..], b"Zm8=", b"Zm8\n", b"Z"] {
            assert_eq!(decode_unpadded(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn an_independent_codec_agrees(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[A-Za-z0-9+/=]{0,12}") {
            use base64ct::Encoding as _;
            let padded = base64ct::Base64::encode_string(&bytes);
            prop_assert_eq!(&encode(&bytes), &padded);
            prop_assert_eq!(decode(padded.as_bytes()), Some(bytes.clone()));
            let unpadded = base64ct::Base64Unpadded::encode_string(&bytes);
            prop_assert_eq!(&encode_unpadded(&bytes), &unpadded);
            prop_assert_eq!(decode_unpadded(unpadded.as_bytes()), Some(bytes));
            let strict = base64ct::Base64::decode_vec(&text).ok();
            let strict = strict.filter(|bytes| base64ct::Base64::encode_string(bytes) == text);
            prop_assert_eq!(decode(text.as_bytes()), strict);
        }
    }
}
