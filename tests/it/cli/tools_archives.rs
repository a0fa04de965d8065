//! Archives that somebody packed to do harm: refused, with the ledger as it was and nothing written anywhere.

use super::Desk;
use super::tools::desk;

/// A member: its name, how it is packed, its packed bytes, and the length that it says.
struct Member {
    name: &'static str,
    method: u16,
    packed: Vec<u8>,
    said: u32,
    crc: u32,
    flags: u16,
}

/// The checksum of ZIP, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    };
    !bytes.iter().fold(!0, byte)
}

fn stored(name: &'static str, text: &str) -> Member {
    Member {
        name,
        method: 0,
        packed: text.as_bytes().to_vec(),
        said: u32::try_from(text.len()).unwrap(),
        crc: crc(text.as_bytes()),
        flags: 0,
    }
}

/// An archive of members, as ZIP has it.
fn archive(members: &[Member]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for of in members {
        let offset = u32::try_from(out.len()).unwrap();
        let mut shared = Vec::new();
        for number in [20, of.flags, of.method, 0, 33] {
            shared.extend(number.to_le_bytes());
        }
        shared.extend(of.crc.to_le_bytes());
        shared.extend(u32::try_from(of.packed.len()).unwrap().to_le_bytes());
        shared.extend(of.said.to_le_bytes());
        shared.extend(u16::try_from(of.name.len()).unwrap().to_le_bytes());
        shared.extend(0_u16.to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&shared);
        out.extend(of.name.as_bytes());
        out.extend(&of.packed);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&shared);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(of.name.as_bytes());
    }
    let start = u32::try_from(out.len()).unwrap();
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].concat());
    out.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// A frame of zstd that unpacks to `blocks` times 128 KiB of one byte.
fn bomb(blocks: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for at in 1..=blocks {
        let header = u32::from(at == blocks) | 1 << 1 | (128 << 10) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(b' ');
    }
    frame
}

const HEADER: &str = r#"{"version":2,"status":"success","eval":{"task":"t","model":"m"}}"#;
const SUMMARIES: &str = r#"[{"id":"a","epoch":1,"scores":{"judge":{"value":0.5}}}]"#;
const SAMPLE: &str = r#"{"id":"a","epoch":1,"input":"Why?","output":{"completion":"So."},"scores":{"judge":{"value":0.5}}}"#;

fn log() -> Vec<Member> {
    vec![
        stored("header.json", HEADER),
        stored("summaries.json", SUMMARIES),
        stored("samples/a_epoch_1.json", SAMPLE),
    ]
}

fn put(desk: &Desk, bytes: &[u8]) {
    std::fs::write(desk.at.join("log.eval"), bytes).unwrap();
}

fn refused(desk: &mut Desk, members: &[Member], parts: &[&str]) {
    put(desk, &archive(members));
    let before = files(desk);
    desk.refused(&["import", "inspect", "log.eval"], 4, parts);
    assert_eq!(files(desk), before);
}

/// Names of all files beside the ledger.
fn files(desk: &Desk) -> Vec<String> {
    let mut all: Vec<_> = [desk.at.clone(), desk.folder.path().to_owned()]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|of| of.unwrap().path().display().to_string())
        .collect();
    all.sort();
    all
}

#[test]
fn an_archive_that_is_a_log_is_read() {
    let mut desk = desk();
    let bytes = archive(&log());
    put(&desk, &bytes);
    desk.ok("import inspect log.eval --dry-run");
    // A sample that the summaries do not name is not read, and that is said.
    let mut more = log();
    more.push(stored("samples/b_epoch_1.json", SAMPLE));
    put(&desk, &archive(&more));
    let ran = desk.ok("import inspect log.eval --dry-run");
    let text = format!("{}{}", ran.out, ran.err);
    assert!(
        text.contains("1 samples of the archive are not in its summaries.json")
            && text.contains("samples/b_epoch_1.json"),
        "{text}"
    );
    // As a custodian opens it: line feeds behind its end are none of it.
    put(&desk, &[bytes.as_slice(), b"\n\n\n\n"].concat());
    desk.ok("import inspect log.eval");
}

#[test]
fn an_archive_unpacks_to_no_more_than_it_may() {
    let mut desk = desk();
    let member = |said, packed: Vec<u8>| Member {
        name: "header.json",
        method: 93,
        packed,
        said,
        crc: 0,
        flags: 0,
    };
    // It says how long it is.
    let mut members = log();
    members[0] = member(3 << 30, bomb(4));
    refused(
        &mut desk,
        &members,
        &["header.json: expected at most 16777216 bytes"],
    );
    // It says less: nobody unpacks more than may be.
    members[0] = member(10, bomb(4_000));
    refused(
        &mut desk,
        &members,
        &["header.json: expected at most 16777216 bytes"],
    );
    members[0] = member(10, bomb(1));
    refused(
        &mut desk,
        &members,
        &["header.json: expected what its length and its checksum say"],
    );
}

#[test]
fn an_archive_leads_nowhere_else() {
    let mut desk = desk();
    for name in [
        "../evil.json",
        "samples/../../evil",
        "/etc/evil",
        "..\\evil",
        "C:evil",
    ] {
        let mut members = log();
        members.push(stored(name, "{}"));
        refused(
            &mut desk,
            &members,
            &["expected names of members within the archive, found"],
        );
    }
    let mut members = log();
    members.push(stored("header.json", HEADER));
    refused(&mut desk, &members, &["a name is there twice"]);
}

#[test]
fn a_broken_archive_says_what_is_wrong_with_it() {
    let mut desk = desk();
    let mut members = log();
    members[1].crc ^= 1;
    refused(
        &mut desk,
        &members,
        &["summaries.json: expected what its length and its checksum say"],
    );
    let mut members = log();
    members[0].method = 12;
    refused(
        &mut desk,
        &members,
        &["header.json: expected a member that is stored, deflated or packed by zstd"],
    );
    let mut members = log();
    members[0].flags = 1;
    refused(
        &mut desk,
        &members,
        &["header.json: expected a member that is not encrypted"],
    );
    let mut members = log();
    members.remove(2);
    refused(
        &mut desk,
        &members,
        &["samples/a_epoch_1.json: expected this member"],
    );
    let mut members = log();
    members[0].name = "_journal/start.json";
    refused(
        &mut desk,
        &members,
        &["header.json: expected this member, found none: the run did not end"],
    );
    let mut members = log();
    members[0] = stored("header.json", r#"{"version":3,"eval":{"model":"m"}}"#);
    refused(&mut desk, &members, &["version: expected 2, found 3"]);
    let mut members = log();
    members[0] = stored("header.json", r#"{"version":2,"eval":{"model":Infinity}}"#);
    refused(
        &mut desk,
        &members,
        &["header.json: eval.model: expected a number, found Infinity"],
    );
    let whole = archive(&log());
    put(&desk, &whole[..whole.len() / 2]);
    desk.refused(
        &["import", "inspect", "log.eval"],
        4,
        &["log.eval: expected an archive"],
    );
}
