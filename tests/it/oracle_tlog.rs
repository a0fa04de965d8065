//! Trees, proofs, notes and checkpoints, graded by code that is not ours: the crates `ct-merkle`,
//! `signed_note` and `tlog_tiles`, and `openssl`. Also: no bytes make a parser panic, and what a
//! parser accepts encodes to the same bytes.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use clover::ground::digest::Digest;
use clover::ground::merkle;
use clover::ground::merkle::MemoryTiles;
use clover::ground::note::Checkpoint;
use clover::ground::note::KeyName;
use clover::ground::note::Note;
use clover::ground::note::NoteSignature;
use clover::ground::note::Origin;
use clover::ground::note::ProofFile;
use clover::ground::note::SignedCheckpoint;
use clover::ground::note::VerifierKey;
use clover::ground::note::cosign_message;
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use ed25519_dalek::SigningKey;
use proptest::prelude::*;

const ORIGIN: &str = "ledger.example/exp1";
const LOG_VKEY: &str = "ledger.example/exp1+4fdfa565+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
const TIME: u64 = 1_790_000_000;

fn secret(first: u8) -> SigningKey {
    SigningKey::from_bytes(&std::array::from_fn(|n| first + u8::try_from(n).unwrap()))
}

fn log() -> (VerifierKey, SigningKey) {
    let secret = secret(0);
    let origin = Origin::parse(ORIGIN).unwrap();
    (
        VerifierKey::ed25519(origin, secret.verifying_key().to_bytes()).unwrap(),
        secret,
    )
}

fn witness() -> (VerifierKey, SigningKey) {
    let secret = secret(0x20);
    let name = KeyName::parse("witness.example/w1").unwrap();
    (
        VerifierKey::cosignature(name, secret.verifying_key().to_bytes()).unwrap(),
        secret,
    )
}

/// The five entries of the worked example; entry 2 is a DSSE envelope.
fn entries() -> Vec<Vec<u8>> {
    let body = concat!(
        r#"{"_type":"https://in-toto.io/Statement/v1","predicate":{"budget":1e-7,"#,
        r#""decision":"ship","p":0.031,"peeks":1,"seq":2},"predicateType":"#,
        r#""https://ledger.example/predicate/gate-decision/v1","subject":[{"digest":"#,
        r#"{"sha256":"2a00420360d84351968d49a1f850454e0f70452516da5353fe9e3c329cf69603"},"#,
        r#""name":"run/7"}]}"#,
    );
    assert_eq!(body.len(), 301);
    let signature = concat!(
        "e71962243f9eee541410c4bd50b4f89b542b00ddec51792f59b79b7dc0b5c4e8",
        "d4919c00da4dca0872bb4181d0ecc8063a1c272bb895cc95f26177d08586410b",
    );
    let signature: Vec<u8> = (0..128)
        .step_by(2)
        .map(|at| u8::from_str_radix(&signature[at..at + 2], 16).unwrap())
        .collect();
    let envelope = format!(
        r#"{{"payload":"{}","payloadType":"application/vnd.in-toto+json","signatures":[{{"keyid":"03396219237f75a6","sig":"{}"}}]}}"#,
        base64(body.as_bytes()),
        base64(&signature),
    );
    assert_eq!(envelope.len(), 604);
    [b"e0", b"e1", envelope.as_bytes(), b"e3", b"e4"]
        .map(<[u8]>::to_vec)
        .to_vec()
}

/// Standard padded base64, written here so that the file does not lean on the code it tests.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            text.push(if digit <= chunk.len() {
                char::from(DIGITS[(group >> (18 - 6 * digit)) as usize & 63])
            } else {
                '='
            });
        }
    }
    text
}

fn tiles(entries: &[Vec<u8>]) -> MemoryTiles {
    let mut tiles = MemoryTiles::new();
    for entry in entries {
        tiles.push(merkle::leaf_hash(entry));
    }
    tiles
}

fn checkpoint() -> SignedCheckpoint {
    let (key, secret) = log();
    let root = tiles(&entries()).root();
    let checkpoint = Checkpoint::new(Origin::parse(ORIGIN).unwrap(), 5, root);
    SignedCheckpoint::sign(checkpoint, &[(key, &secret)]).unwrap()
}

fn cosigned() -> SignedCheckpoint {
    let signed = checkpoint();
    let (key, secret) = witness();
    let cosignature = NoteSignature::cosign(signed.note().text(), TIME, &key, &secret).unwrap();
    signed.with_signature(cosignature).unwrap()
}

fn proof_file() -> ProofFile {
    let hashes = merkle::inclusion_proof(&tiles(&entries()), 2, 5).unwrap();
    ProofFile::new(None, 2, hashes, cosigned()).unwrap()
}

/// Asserts a length and the SHA-256 that the reference implementation printed.
fn assert_bytes(bytes: &[u8], length: usize, sha256: &str) {
    assert_eq!(bytes.len(), length);
    assert_eq!(Digest::sha256(bytes).to_string(), sha256);
}

#[test]
fn worked_files_are_reproduced_to_the_byte() {
    // source: Python `hashlib` and `cryptography`, seeds 00..1f (log) and 20..3f (witness)
    let entries = entries();
    let leaves: Vec<_> = entries
        .iter()
        .map(|entry| merkle::leaf_hash(entry))
        .collect();
    assert_bytes(
        &merkle::encode_tile(&leaves),
        160,
        "9574d276fd53a57ae9648e2712a91b9c82c78be3c91ccd52175c6dec9525ae89",
    );
    let bundle = merkle::encode_bundle(&entries).unwrap();
    assert!(bundle.starts_with(b"\0\x02e0\0\x02e1\x02\x5c"));
    assert_bytes(
        &bundle,
        622,
        "2b601da32f74149b7501d13f88d9c962865ef72cacc762b38fe589f03ac48e84",
    );
    assert_eq!(merkle::decode_bundle(&bundle).unwrap(), entries);
    assert_bytes(
        &cosigned().encode(),
        313,
        "d0b54256bd4aaeacfb82c49dae98c32db126bfcfd583ebb39469e0431510dc1c",
    );
    assert_bytes(
        &proof_file().encode(),
        480,
        "c239dcdc9b322530420fff5a356929efada4eabc1fa48ab3ddf717adaa262e1b",
    );

    // The request that a log sends to its witness: all parts of it are ours.
    let proof = merkle::consistency_proof(&tiles(&entries), 3, 5).unwrap();
    let lines: String = proof.iter().map(|hash| hash.to_base64() + "\n").collect();
    let request = format!("old 3\n{lines}\n{}", checkpoint());
    assert_bytes(
        request.as_bytes(),
        372,
        "1e8db082fc9278d64d189b06bf88c4038cfb8b0421e298c0a91546512e96b4c5",
    );
    assert_eq!(
        Digest::sha256(ORIGIN.as_bytes()).to_string(),
        "cfa5e14dce54fa51cc52a933bdc8a60a144ef5f4ac2900b093f64a548b68aefa",
    );
}

#[test]
fn ct_merkle_has_the_same_roots_and_proofs() {
    let mut ours = MemoryTiles::new();
    let mut theirs = MemoryBackedTree::<sha2::Sha256, Vec<u8>>::new();
    let bytes = |proof: Vec<Digest>| merkle::encode_tile(&proof);
    for size in 1..=600_u64 {
        let entry = size.to_be_bytes().to_vec();
        ours.push(merkle::leaf_hash(&entry));
        theirs.push(entry.clone());
        let root = theirs.root();
        assert_eq!(root.as_bytes().as_slice(), ours.root().as_bytes());
        if size > 70 && size % 29 != 0 && size != 256 && size != 257 {
            continue;
        }
        for index in 0..size {
            let at = usize::try_from(index).unwrap();
            let proof = merkle::inclusion_proof(&ours, index, size).unwrap();
            assert_eq!(theirs.prove_inclusion(at).as_bytes(), bytes(proof));
            let added = usize::try_from(size - index - 1).unwrap();
            let proof = merkle::consistency_proof(&ours, index + 1, size).unwrap();
            assert_eq!(theirs.prove_consistency(added).as_bytes(), bytes(proof));
        }
    }
}

#[test]
fn tlog_tiles_accepts_our_proofs() {
    let source: Vec<Vec<u8>> = (0..300_u32).map(|n| n.to_be_bytes().to_vec()).collect();
    let ours = tiles(&source);
    let hash = |digest: &Digest| tlog_tiles::Hash(*digest.as_bytes());
    let all = |proof: Vec<Digest>| proof.iter().map(hash).collect::<Vec<_>>();
    let root_at = |size| hash(&merkle::root_at(&ours, size).unwrap());
    for size in (1..70).chain([255, 256, 257, 300]) {
        for index in 0..size {
            let leaf = tlog_tiles::record_hash(&source[usize::try_from(index).unwrap()]);
            let proof = all(merkle::inclusion_proof(&ours, index, size).unwrap());
            tlog_tiles::check_record(&proof, size, root_at(size), index, leaf).unwrap();
            let first = index + 1;
            let proof = all(merkle::consistency_proof(&ours, first, size).unwrap());
            tlog_tiles::check_tree(&proof, size, root_at(size), first, root_at(first)).unwrap();
        }
    }
}

#[test]
fn tlog_tiles_has_the_same_tile_paths() {
    for index in [0, 7, 273, 999, 1000, 1_234_067, 999_999_999, u64::MAX >> 8] {
        for width in [1, 112, 255, 256] {
            for level in [0, 1, 7] {
                let tile = tlog_tiles::Tile::new(8, level, index, width.into(), false);
                let path = merkle::tile_path(level, index, width);
                assert_eq!(tile.path().replacen("tile/8/", "tile/", 1), path);
            }
            let tile = tlog_tiles::Tile::new(8, 0, index, width.into(), true);
            let path = merkle::entries_path(index, width);
            assert_eq!(
                tile.path().replacen("tile/8/data/", "tile/entries/", 1),
                path
            );
        }
    }
    // What a tree of that size consists of, by their count and by ours.
    for size in [1, 255, 256, 257, 65_535, 65_536, 70_000] {
        for tile in tlog_tiles::Tile::new_tiles(8, 0, size) {
            let width = merkle::tile_width(tile.level(), tile.level_index(), size);
            assert_eq!(tile.width(), u32::from(width));
        }
    }
}

#[test]
fn tlog_tiles_reads_our_checkpoint() {
    let ours = checkpoint();
    let theirs = tlog_tiles::Checkpoint::from_bytes(ours.note().text().as_bytes()).unwrap();
    assert_eq!(theirs.origin(), ORIGIN);
    assert_eq!(theirs.size(), 5);
    assert_eq!(theirs.hash().0, *ours.checkpoint().root.as_bytes());
    assert_eq!(theirs.to_bytes(), ours.note().text().as_bytes());
}

/// A cosigner as the crate `signed_note` wants it, which knows plain Ed25519 only.
struct Cosigner(signed_note::StandardVerifier, String, u32);

impl signed_note::Verifier for Cosigner {
    fn name(&self) -> &str {
        &self.1
    }
    fn key_id(&self) -> u32 {
        self.2
    }
    fn verify(&self, text: &[u8], signature: &[u8]) -> bool {
        let (time, signature) = signature.split_at(8);
        let time = u64::from_be_bytes(time.try_into().unwrap());
        let mut message = format!("cosignature/v1\ntime {time}\n").into_bytes();
        message.extend_from_slice(text);
        self.0.verify(&message, signature)
    }
}

#[test]
fn signed_note_accepts_our_notes_and_we_accept_its() {
    let (key, log_secret) = log();
    assert_eq!(key.to_string(), LOG_VKEY);
    let verifier = signed_note::StandardVerifier::new(LOG_VKEY).unwrap();
    let bytes = cosigned().encode();
    let note = signed_note::Note::from_bytes(&bytes).unwrap();
    assert_eq!(note.to_bytes(), bytes);

    let (witness_key, _) = witness();
    // The witness's bare key under any name, for its check of plain Ed25519.
    let public_key = witness_key.public_key().try_into().unwrap();
    let bare = VerifierKey::ed25519(KeyName::parse("bare").unwrap(), public_key).unwrap();
    let cosigner = Cosigner(
        signed_note::StandardVerifier::new(&bare.to_string()).unwrap(),
        witness_key.name().to_string(),
        u32::from_be_bytes(witness_key.key_id()),
    );
    let list = signed_note::VerifierList::new(vec![Box::new(verifier), Box::new(cosigner)]);
    let (good, unknown) = note.verify(&list).unwrap();
    assert_eq!((good.len(), unknown.len()), (2, 0));

    let mut seed = vec![1];
    seed.extend_from_slice(log_secret.as_bytes());
    let skey = format!("PRIVATE+KEY+{ORIGIN}+4fdfa565+{}", base64(&seed));
    let signer = signed_note::StandardSigner::new(&skey).unwrap();
    let mut theirs = signed_note::Note::new(b"any text\n", &[]).unwrap();
    theirs.add_sigs(&[&signer]).unwrap();
    let ours = Note::parse(&theirs.to_bytes()).unwrap();
    assert_eq!(ours.encode(), theirs.to_bytes());
    assert_eq!(ours.verify(&[key]).unwrap().len(), 1);
}

/// Runs `openssl pkeyutl -verify`. None when there is no such program.
fn openssl_verifies(folder: &Path, key: &[u8], text: &[u8], signature: &[u8]) -> Option<bool> {
    let mut der = vec![
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    der.extend_from_slice(key);
    std::fs::write(folder.join("key.der"), der).unwrap();
    std::fs::write(folder.join("text"), text).unwrap();
    std::fs::write(folder.join("sig"), signature).unwrap();
    let arguments =
        "pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in text -sigfile sig";
    let run = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output();
    match run {
        Ok(output) => Some(output.status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("openssl: {error}"),
    }
}

#[test]
fn openssl_accepts_our_signatures() {
    let folder = std::env::temp_dir().join(format!("clover-oracle-tlog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let signed = cosigned();
    let note = signed.note();
    let [by_log, by_witness] = note.signatures() else {
        panic!("two signatures")
    };
    let text = note.text().as_bytes();
    let verdict = openssl_verifies(&folder, log().0.public_key(), text, by_log.signature());
    if verdict.is_none() {
        std::io::stdout()
            .write_all(b"skipped: openssl not found\n")
            .unwrap();
    } else {
        assert_eq!(verdict, Some(true));
        let message = cosign_message(TIME, note.text());
        let cosignature = &by_witness.signature()[8..];
        let key = witness().0;
        let key = key.public_key();
        assert_eq!(
            openssl_verifies(&folder, key, &message, cosignature),
            Some(true)
        );
        assert_eq!(
            openssl_verifies(&folder, key, text, cosignature),
            Some(false)
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Feeds bytes to every parser of foreign bytes.
fn parse_all(bytes: &[u8]) {
    if let Ok(note) = Note::parse(bytes) {
        assert_eq!(note.encode(), bytes);
        drop(note.verify(&[log().0, witness().0]));
    }
    if let Ok(signed) = SignedCheckpoint::parse(bytes) {
        assert_eq!(signed.encode(), bytes);
        drop(signed.verify(&[log().0, witness().0]));
    }
    if let Ok(proof) = ProofFile::parse(bytes) {
        assert_eq!(proof.encode(), bytes);
        drop(proof.verify(&merkle::empty_root(), &[log().0]));
    }
    if let Ok(entries) = merkle::decode_bundle(bytes) {
        assert_eq!(merkle::encode_bundle(&entries).unwrap(), bytes);
    }
    if let Ok(hashes) = merkle::decode_tile(bytes) {
        assert_eq!(merkle::encode_tile(&hashes), bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(checkpoint) = Checkpoint::parse(text) {
        assert_eq!(checkpoint.to_text(), text);
    }
    if let Ok(lines) = NoteSignature::parse_lines(text) {
        let again: Vec<String> = lines.iter().map(NoteSignature::to_string).collect();
        assert_eq!(again.join("\n") + "\n", text);
    }
    if let Ok(key) = VerifierKey::parse(text) {
        assert_eq!(key.to_string(), text);
    }
    if let Ok(name) = KeyName::parse(text) {
        assert_eq!(name.as_str(), text);
    }
    if let Ok(origin) = Origin::parse(text) {
        assert_eq!(KeyName::parse(text).as_ref(), Ok(origin.key_name()));
    }
}

/// A valid input with some of its bytes replaced, doubled, moved or cut.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let valid = [
        cosigned().encode(),
        proof_file().encode(),
        ProofFile::new(Some(vec![1, 2, 3]), 0, vec![], checkpoint())
            .unwrap()
            .encode(),
        checkpoint().note().text().as_bytes().to_vec(),
        LOG_VKEY.as_bytes().to_vec(),
        witness().0.to_string().into_bytes(),
        merkle::encode_bundle(&entries()).unwrap(),
    ];
    let edit = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0..5_u8,
        any::<u8>(),
    );
    let edits = prop::collection::vec(edit, 0..4);
    (prop::sample::select(valid.to_vec()), edits).prop_map(|(mut bytes, edits)| {
        for (from, to, way, byte) in edits {
            if bytes.is_empty() {
                break;
            }
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            match way {
                0 => bytes[from] = byte,
                1 => bytes.insert(from, b'\n'),
                2 => drop(bytes.drain(from.min(to)..from.max(to))),
                3 => bytes.extend_from_within(from.min(to)..from.max(to)),
                _ => bytes.truncate(from),
            }
        }
        bytes
    })
}

/// A line of printable characters, some beyond ASCII.
fn line() -> impl Strategy<Value = String> {
    "[ -~äß—\u{2003}]{1,40}"
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        parse_all(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(\\PC|\n|— [a-z]{1,3} [A-Za-z0-9+/]{8}\n){0,30}") {
        parse_all(text.as_bytes());
    }

    #[test]
    fn damaged_files_never_panic(bytes in damaged()) {
        parse_all(&bytes);
    }

    #[test]
    fn any_note_reads_back(
        lines in prop::collection::vec(line(), 0..6),
        times in prop::collection::vec(any::<u64>(), 0..4),
    ) {
        let text = lines.join("\n") + "\n";
        let ((log, log_secret), (witness, witness_secret)) = (log(), witness());
        let mut signatures = vec![NoteSignature::sign(&text, &log, &log_secret).unwrap()];
        for time in &times {
            let cosign = NoteSignature::cosign(&text, *time, &witness, &witness_secret);
            signatures.push(cosign.unwrap());
        }
        let note = Note::new(text, signatures).unwrap();
        let again = Note::parse(&note.encode());
        prop_assert_eq!(again.as_ref(), Ok(&note));
        let verified = note.verify(&[log, witness]).unwrap();
        prop_assert_eq!(verified[0].time, None);
        prop_assert_eq!(verified.get(1).and_then(|found| found.time), times.iter().max().copied());
    }

    #[test]
    fn any_checkpoint_and_proof_reads_back(
        size in any::<u64>(),
        index in any::<u64>(),
        root in any::<[u8; 32]>(),
        extensions in prop::collection::vec(line(), 0..3),
        extra in prop::option::of(prop::collection::vec(any::<u8>(), 0..50)),
        hashes in prop::collection::vec(any::<[u8; 32]>(), 0..=63),
    ) {
        let (key, secret) = log();
        let mut checkpoint = Checkpoint::new(key.name().clone(), size, Digest(root));
        for line in extensions {
            checkpoint = checkpoint.with_extension(line).unwrap();
        }
        let again = Checkpoint::parse(&checkpoint.to_text());
        prop_assert_eq!(again.as_ref(), Ok(&checkpoint));
        let keys = [key.clone()];
        let signed = SignedCheckpoint::sign(checkpoint, &[(key, &secret)]).unwrap();
        prop_assert!(signed.verify(&keys).is_ok());
        let hashes = hashes.into_iter().map(Digest).collect();
        let proof = ProofFile::new(extra, index, hashes, signed).unwrap();
        let again = ProofFile::parse(&proof.encode());
        prop_assert_eq!(again.as_ref(), Ok(&proof));
        prop_assert!(proof.verify(&merkle::empty_root(), &keys).is_err());
    }
}
