//! Envelopes against two independent implementations of age v1: the `age` crate, and the stock
//! `age` command where it is installed. Each opens what the other writes.

use std::io::Write as _;
use std::iter;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use age::secrecy::ExposeSecret as _;
use clover::ground::ambient;
use clover::ground::ambient::SeededEntropy;
use clover::ground::seal;
use clover::ground::seal::Identity;

/// Around every border of the 64 KiB chunks.
const LENGTHS: [usize; 9] = [0, 1, 40, 65_535, 65_536, 65_537, 131_071, 131_072, 200_000];

fn entropy() -> SeededEntropy {
    SeededEntropy::new([3; 32])
}

fn plaintext(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

/// One key on both sides: ours, and the crate's.
fn ours_and_theirs() -> (Identity, age::x25519::Identity) {
    let ours = Identity::generate(&mut entropy()).unwrap();
    let theirs = ours.to_string().parse::<age::x25519::Identity>().unwrap();
    (ours, theirs)
}

/// What the command prints on standard output, or `None` where it is not installed.
fn run(command: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let started = Command::new(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        println!("skipped: {command} not found");
        return None;
    };
    // Written from another thread: both pipes fill up at these lengths.
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{command} {arguments:?}");
    Some(output.stdout)
}

#[test]
fn keys_have_the_same_texts() {
    let (ours, theirs) = ours_and_theirs();
    assert_eq!(theirs.to_string().expose_secret(), ours.to_string());
    assert_eq!(theirs.to_public().to_string(), ours.recipient().to_string());

    let theirs = age::x25519::Identity::generate();
    let ours = theirs
        .to_string()
        .expose_secret()
        .parse::<Identity>()
        .unwrap();
    let recipient = theirs.to_public().to_string();
    assert_eq!(ours.recipient(), recipient.parse().unwrap());
    assert_eq!(ours.recipient().to_string(), recipient);
}

#[test]
fn the_crate_opens_what_is_sealed_here() {
    let (ours, theirs) = ours_and_theirs();
    let mut entropy = entropy();
    let other = Identity::generate(&mut entropy).unwrap();
    for length in LENGTHS {
        let plaintext = plaintext(length);
        for recipients in [
            vec![ours.recipient()],
            vec![other.recipient(), ours.recipient()],
        ] {
            let file = seal::encrypt(&plaintext, &recipients, &mut entropy).unwrap();
            assert!(
                age::decrypt(&theirs, &file).unwrap() == plaintext,
                "{length}"
            );
        }
    }
}

#[test]
fn what_the_crate_seals_is_opened_here() {
    let (ours, theirs) = ours_and_theirs();
    let other = age::x25519::Identity::generate().to_public();
    let identities = [ours];
    for length in LENGTHS {
        let plaintext = plaintext(length);
        let file = age::encrypt(&theirs.to_public(), &plaintext).unwrap();
        seal::check_header(&file, &identities).unwrap();
        assert!(
            seal::decrypt(&file, &identities).unwrap() == plaintext,
            "{length}"
        );

        // Two recipients and the grease stanza that the crate adds at random.
        let recipients: [&dyn age::Recipient; 2] = [&other, &theirs.to_public()];
        let encryptor = age::Encryptor::with_recipients(recipients.into_iter()).unwrap();
        let mut file = Vec::new();
        let mut writer = encryptor.wrap_output(&mut file).unwrap();
        writer.write_all(&plaintext).unwrap();
        writer.finish().unwrap();
        assert!(
            seal::decrypt(&file, &identities).unwrap() == plaintext,
            "{length}"
        );
    }
}

#[test]
fn both_refuse_the_same_damage() {
    let (ours, theirs) = ours_and_theirs();
    let identities = [ours];
    let file = seal::encrypt(&[8; 40], &[identities[0].recipient()], &mut entropy()).unwrap();
    let flips = (0..file.len()).map(|at| {
        let mut flipped = file.clone();
        flipped[at] ^= 1;
        flipped
    });
    let cuts = (0..file.len()).map(|length| file[..length].to_vec());
    let longer = iter::once([&file[..], b"\0"].concat());
    for damaged in flips.chain(cuts).chain(longer) {
        assert!(seal::decrypt(&damaged, &identities).is_err(), "{damaged:?}");
        assert!(age::decrypt(&theirs, &damaged).is_err(), "{damaged:?}");
    }
}

#[test]
fn the_stock_command_agrees() {
    let (ours, _) = ours_and_theirs();
    let recipient = ours.recipient().to_string();
    let Some(_) = run("age", &["--version"], b"") else {
        return;
    };
    let name = format!("oracle_age-{}.txt", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    ambient::replace(&path, format!("{ours}\n").as_bytes(), false).unwrap();
    let identities = [ours];
    for length in LENGTHS {
        let plaintext = plaintext(length);
        let file = seal::encrypt(&plaintext, &[identities[0].recipient()], &mut entropy()).unwrap();
        let opened = run("age", &["--decrypt", "-i", path.to_str().unwrap()], &file).unwrap();
        assert!(opened == plaintext, "{length}");
        let file = run("age", &["-r", &recipient], &plaintext).unwrap();
        assert!(
            seal::decrypt(&file, &identities).unwrap() == plaintext,
            "{length}"
        );
    }
    ambient::remove(&path).unwrap();
}

#[test]
fn the_age_crate_opens_what_a_passphrase_closes() {
    let plain = plaintext(300);
    let file = seal::encrypt_with_passphrase(&plain, "open sesame", &mut entropy()).unwrap();
    let mut theirs = age::scrypt::Identity::new("open sesame".to_owned().into());
    theirs.set_max_work_factor(18);
    assert_eq!(age::decrypt(&theirs, &file).unwrap(), plain);
    // And the other way round, at a cost that they choose.
    let mut recipient = age::scrypt::Recipient::new("open sesame".to_owned().into());
    recipient.set_work_factor(12);
    let file = age::encrypt(&recipient, &plain).unwrap();
    let opened = seal::decrypt_with_passphrase(&file, "open sesame").unwrap();
    assert_eq!(opened.as_slice(), plain);
}
