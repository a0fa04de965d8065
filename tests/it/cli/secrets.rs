//! What is secret stays with its owner: no passphrase reaches a child, identities are kept under the key's passphrase, and
//! what was decrypted is readable by its owner alone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Desk;
use super::killed::Home;
use super::says;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A file with permission bits.
fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A judge that keeps the environment that it was given.
const PRYING: &str = r#"env > env.txt
while read -r line; do
  id=${line#*\"id\":}
  echo "{\"id\":${id%%,*},\"score\":0.5}"
done
"#;

#[test]
fn no_variable_of_the_program_reaches_a_command() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("work")).unwrap();
    let home = Home(folder.path());
    let line = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        home.ok(&words)
    };
    line("init --holder Ada --roles all");
    line("experiment register sim --title Simulation --purpose testing");
    line(
        "simulate dataset --truth citations --seed 7 --slices 4 --window 60 --confirm 20 --fresh 1000 -o sim",
    );
    write(&folder.path().join("work/prying.sh"), PRYING, 0o600);
    let run = "judge run --judge prying --model m-1 --rows sim/responses --json -- sh prying.sh";
    let mut command = home.command(&run.split(' ').collect::<Vec<_>>());
    command.env("CLOVER_PASSPHRASE", "open sesame");
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.env("JUDGE_ENDPOINT", "kept");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let seen = std::fs::read_to_string(folder.path().join("work/env.txt")).unwrap();
    assert!(seen.contains("JUDGE_ENDPOINT=kept"), "{seen}");
    assert!(
        !seen.contains("CLOVER_") && !seen.contains("sesame"),
        "{seen}"
    );
}

const SEAL: &str = "seal label --experiment exp-1 --design confirm --row p/i/0 --value 0.25 --to vera --reveal-by 2027-01-31T00:00:00.000000Z --yes --key cem";
const ACCEPT: &str = "seal accept --experiment exp-1 --design confirm --row p/i/0 --key vera";

/// A ledger whose custodian's key has a passphrase, and a label sealed to it.
fn sealed_to_vera() -> Desk {
    let mut desk = Desk::with_ledger();
    write(&desk.at.join("pass"), "open sesame\n", 0o600);
    desk.ok("key new vera --role custodian --new-passphrase-file pass");
    desk.ok("key new lena --role labeler");
    desk.ok(
        "label design new confirm --experiment exp-1 --purpose audit --probability 1 --key lena",
    );
    desk.ok(SEAL);
    desk
}

#[test]
fn an_identity_is_kept_under_the_passphrase_of_its_key() {
    let mut desk = sealed_to_vera();
    let file = desk.key_file("vera").with_extension("age");
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1\n-> scrypt "));
    assert_eq!(mode(&file), 0o600);
    // A key without a passphrase keeps its identity as the age tool writes it.
    let clear = std::fs::read_to_string(desk.key_file("cem").with_extension("age")).unwrap();
    assert!(clear.contains("AGE-SECRET-KEY-"), "{clear}");
    write(&desk.at.join("wrong"), "guess", 0o600);
    let ran = desk.run(ACCEPT);
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(&ran, &["is encrypted and no passphrase was given"]);
    let ran = desk.run(&format!("{ACCEPT} --passphrase-file wrong"));
    assert_eq!(ran.code, 4, "{}", ran.err);
    desk.ok(&format!("{ACCEPT} --passphrase-file pass"));
    let doctor = desk.run("doctor");
    assert!(!doctor.out.contains("lies in clear"), "{}", doctor.out);
    desk.ok("verify");
}

#[test]
fn an_identity_in_clear_beside_an_encrypted_key_is_told_of() {
    let mut desk = sealed_to_vera();
    let file = desk.key_file("vera").with_extension("age");
    let opened = clover::ground::seal::decrypt_with_passphrase(
        &std::fs::read(&file).unwrap(),
        "open sesame",
    )
    .unwrap();
    std::fs::write(&file, opened.as_slice()).unwrap();
    let doctor = desk.run("doctor");
    let said: Vec<&str> = doctor.out.split_whitespace().collect();
    assert!(
        said.join(" ")
            .contains("lies in clear beside an encrypted key: age --passphrase"),
        "{}",
        doctor.out
    );
    let ran = desk.ok(&format!("{ACCEPT} --passphrase-file pass"));
    assert!(ran.err.contains("lies in clear"), "{}", ran.err);
}

#[test]
fn what_was_decrypted_and_what_is_pinned_is_private_under_any_umask() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("work")).unwrap();
    let home = Home(folder.path());
    let loose = |words: &str| {
        let mut command = home.command(&[]);
        let program = command.get_program().to_owned();
        let script = format!("umask 000; exec \"$0\" {words}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).arg(program).env_clear();
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap());
        }
        let ran = shell
            .current_dir(
                command
                    .current_dir(folder.path().join("work"))
                    .get_current_dir()
                    .unwrap(),
            )
            .output()
            .unwrap();
        assert!(ran.status.success(), "{words}\n{ran:?}");
        serde_json::from_slice::<serde_json::Value>(&ran.stdout).unwrap_or_default()
    };
    let made = loose("init --holder Ada --roles all --json");
    let pin = made["data"]["pin"].as_str().unwrap().to_owned();
    assert_eq!(mode(Path::new(&pin)), 0o600);
    assert_eq!(mode(Path::new(&pin).parent().unwrap()), 0o700);
    std::fs::write(folder.path().join("work/private.txt"), "a prompt").unwrap();
    let put = loose("blob put private.txt --media text/plain --subject new --json");
    let reference = &put["data"]["reference"];
    let blob = reference["blob"]["blake3"].as_str().unwrap();
    let subject = reference["subject"].as_str().unwrap();
    loose(&format!("blob get {blob} --subject {subject} -o plain.txt"));
    let plain = folder.path().join("work/plain.txt");
    assert_eq!(std::fs::read(&plain).unwrap(), b"a prompt");
    assert_eq!(mode(&plain), 0o600);
    // What anybody may read, nobody else may write.
    loose(&format!("blob get {blob} -o stored"));
    assert_eq!(mode(&folder.path().join("work/stored")), 0o644);
    let vault = folder.path().join("work/.clover/vault.db");
    assert_eq!(mode(&vault), 0o600);
}
