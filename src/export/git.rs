//! A git repository as files: blobs, trees and commits as loose objects of the SHA-256 object format, which git reads from
//! 2.29 on. Nothing is asked of a git program, and the same commits give the same ids.

use std::collections::BTreeMap;

use clover_ground::digest::Digest;
use miniz_oxide::deflate::compress_to_vec_zlib;

/// The branch that the commits are on.
pub const BRANCH: &str = "main";
/// How hard objects are packed.
const LEVEL: u8 = 6;
/// Mode of a file in a tree.
const FILE: &str = "100644";
/// Mode of a folder in a tree.
const FOLDER: &str = "40000";

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommit {
    /// Files by name, as text; one `/` in a name makes a folder.
    pub files: BTreeMap<String, String>,
    /// What is said of it; the first line is its title.
    pub message: String,
    /// When, in seconds since 1970 in UTC.
    pub seconds: i64,
}

/// A file of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its path in the repository's folder.
    pub path: String,
}

/// A bare repository of these commits, each after the one before, by an author; with the id of the last commit.
pub fn repository(commits: &[GitCommit], author: &str) -> (Vec<GitFile>, Option<Digest>) {
    let mut objects = Objects::default();
    let mut head = None;
    for commit in commits {
        head = Some(objects.commit(commit, (author, head)));
    }
    let file = |path: &str, text: String| GitFile {
        bytes: text.into_bytes(),
        path: path.to_owned(),
    };
    let mut files = vec![
        file("HEAD", format!("ref: refs/heads/{BRANCH}\n")),
        file(
            "config",
            "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n\
             [extensions]\n\tobjectformat = sha256\n"
                .to_owned(),
        ),
    ];
    if let Some(head) = head {
        let path = format!("refs/heads/{BRANCH}");
        files.push(file(&path, format!("{head}\n")));
    }
    files.extend(objects.files.into_values());
    (files, head)
}

/// Objects by id.
#[derive(Default)]
struct Objects {
    files: BTreeMap<Digest, GitFile>,
}

impl Objects {
    fn add(&mut self, kind: &str, data: &[u8]) -> Digest {
        let mut bytes = format!("{kind} {}\0", data.len()).into_bytes();
        bytes.extend_from_slice(data);
        let id = Digest::sha256(&bytes);
        let hex = id.to_hex();
        let (folder, name) = hex.split_at(2);
        self.files.entry(id).or_insert_with(|| GitFile {
            bytes: compress_to_vec_zlib(&bytes, LEVEL),
            path: format!("objects/{folder}/{name}"),
        });
        id
    }

    fn commit(&mut self, of: &GitCommit, (author, parent): (&str, Option<Digest>)) -> Digest {
        let tree = self.tree(&of.files);
        let mut text = format!("tree {tree}\n");
        if let Some(parent) = parent {
            text += &format!("parent {parent}\n");
        }
        let who = format!("{author} {} +0000", of.seconds.max(0));
        text += &format!(
            "author {who}\ncommitter {who}\n\n{}\n",
            of.message.trim_end()
        );
        self.add("commit", text.as_bytes())
    }

    /// The tree of files: those of a folder are a tree of their own.
    fn tree(&mut self, files: &BTreeMap<String, String>) -> Digest {
        let mut folders: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
        // Git orders a folder as if its name ended with a slash.
        let mut entries: BTreeMap<String, (&str, String, Digest)> = BTreeMap::new();
        for (name, text) in files {
            if let Some((folder, rest)) = name.split_once('/') {
                let of = folders.entry(folder).or_default();
                of.insert(rest.to_owned(), text.clone());
                continue;
            }
            let id = self.add("blob", text.as_bytes());
            entries.insert(name.clone(), (FILE, name.clone(), id));
        }
        for (folder, files) in folders {
            let id = self.tree(&files);
            entries.insert(format!("{folder}/"), (FOLDER, folder.to_owned(), id));
        }
        let mut data = Vec::new();
        for (mode, name, id) in entries.into_values() {
            data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            data.extend_from_slice(id.as_bytes());
        }
        self.add("tree", &data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of the SHA-256 object format that git itself gives.
    #[test]
    fn ids_are_those_of_git() {
        let mut objects = Objects::default();
        // source: printf 'hello\n' | git hash-object --stdin, in a repository of object format sha256
        let blob = objects.add("blob", b"hello\n");
        assert_eq!(
            blob.to_hex(),
            "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"
        );
        // source: git mktree < /dev/null, likewise
        let tree = objects.add("tree", b"");
        assert_eq!(
            tree.to_hex(),
            "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        );
    }

    /// A name and a folder that begin alike, and two commits: every id is the one that git gives.
    ///
    /// source: git 2.47.3, in a repository that `git init --object-format=sha256` made, with name, mail and date of author and
    /// committer in `GIT_AUTHOR_NAME` and so on, the date as `1700000000 +0000`:
    /// `a=$(printf 'a\n' | git hash-object -w --stdin)`, `b=$(printf 'b\n' | git hash-object -w --stdin)`,
    /// `sub=$(printf '100644 blob %s\tx.md\n' $b | git mktree)`,
    /// `top=$(printf '100644 blob %s\ta.md\n040000 tree %s\ta\n' $a $sub | git mktree)`,
    /// `one=$(git commit-tree $top -m one)`, `git commit-tree $top -p $one -m two`.
    #[test]
    fn ids_of_folders_and_commits_are_those_of_git() {
        let files = [("a.md", "a\n"), ("a/x.md", "b\n")];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let commit = |message: &str| GitCommit {
            files: files.clone().into(),
            message: message.to_owned(),
            seconds: 1_700_000_000,
        };
        let (found, head) = repository(
            &[commit("one"), commit("two")],
            "Clover <run@clover.invalid>",
        );
        assert_eq!(
            head.unwrap().to_hex(),
            "70bd1d3b92a04e35d99701a7dcb680c0434156f8bd1df6e315eea128b0f0d620"
        );
        let paths: Vec<_> = found.iter().map(|file| file.path.as_str()).collect();
        for id in [
            "f8625e43f9e04f24291f77cdbe4c71b3c2a3b0003f60419b3ed06a058d766c8b",
            "9b69d308c97f2c5933fdd0e8ce04acce91c09cb969e36a1f86756fc5a5d3323a",
            "cff91548a4e528ef33ffc1a0561296709e3c7286fc97005162cf4d2af9c3d588",
            "477a4bc9e47a718d8f9923b78e075b4936ad98ccd7f4b5309f6311a475f23de3",
            "4e2885b6d67def7cea58d8fc0709091925861440249274337d426da81967a112",
        ] {
            let (folder, name) = id.split_at(2);
            assert!(
                paths.contains(&format!("objects/{folder}/{name}").as_str()),
                "{id}"
            );
        }
    }
}
