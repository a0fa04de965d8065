//! JSON Schemas of bytes, names and times as events write them.

use crate::digest::Digest;
use crate::note::Origin;
use crate::sign::KeyId;
use crate::time::Timestamp;

clover_num::schema! {
    Digest, "Digest" => {"type": "string", "pattern": "^[0-9a-f]{64}$"};
    KeyId, "KeyId" => {"type": "string", "pattern": "^[0-9a-f]{64}$"};
    Origin, "Origin" => {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-*,-@\\[-~]+$"};
    Timestamp, "Timestamp" => {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$"};
}
