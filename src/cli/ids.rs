//! `clover ids KIND`: ids of the ledger, one a line, for the completion of shells; and the parts of the scripts that ask for
//! them.

use std::fmt::Write as _;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::view::View;
use crate::view::ids;
use crate::view::ids::IdKind;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// experiment, gate, patch, iteration, judge or design
    pub kind: IdKind,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    Ok(ids::list(ledger.state(), args.kind))
}

/// Whose id each verb takes, after its words.
const AFTER_VERB: &[(&str, IdKind)] = &[
    ("approve", IdKind::Patch),
    ("battery close", IdKind::Iteration),
    ("battery run", IdKind::Iteration),
    ("confirm seal", IdKind::Design),
    ("confirm unseal", IdKind::Design),
    ("experiment close", IdKind::Experiment),
    ("experiment split", IdKind::Experiment),
    ("exposure open", IdKind::Gate),
    ("gate continue", IdKind::Gate),
    ("gate decide", IdKind::Gate),
    ("gate estimate", IdKind::Gate),
    ("gate look", IdKind::Gate),
    ("gate observe", IdKind::Gate),
    ("gate show", IdKind::Gate),
    ("iterate accept", IdKind::Iteration),
    ("iterate audit", IdKind::Iteration),
    ("iterate cards", IdKind::Iteration),
    ("iterate close", IdKind::Iteration),
    ("iterate confirm", IdKind::Iteration),
    ("iterate fit", IdKind::Iteration),
    ("iterate gate", IdKind::Iteration),
    ("iterate propose", IdKind::Iteration),
    ("iterate run", IdKind::Iteration),
    ("iterate score", IdKind::Iteration),
    ("iterate seal", IdKind::Iteration),
    ("iterate show", IdKind::Iteration),
    ("judge compare", IdKind::Judge),
    ("patch review", IdKind::Patch),
    ("patch withdraw", IdKind::Patch),
    ("report iteration", IdKind::Iteration),
    ("use", IdKind::Experiment),
];

/// Whose id an option takes, whatever the verb.
const AFTER_OPTION: &[(&str, IdKind)] = &[
    ("--design", IdKind::Design),
    ("--experiment", IdKind::Experiment),
    ("--iteration", IdKind::Iteration),
    ("--judge", IdKind::Judge),
];

/// Branches of a `case` that set `kind`.
fn branches(table: &[(&str, IdKind)]) -> String {
    table.iter().fold(String::new(), |mut out, (of, kind)| {
        let kind = crate::view::word(kind);
        writeln!(out, "        \"{of}\") kind={kind} ;;").expect("BUG: a String takes every write");
        out
    })
}

/// What both shells of one family do: the kind of id that may stand next goes to `kind`.
fn finding() -> String {
    format!(
        "_clover_id_kind() {{\n    # $1 is the word before, $2 the verb's words.\n    kind=''\n    case \"$1\" in\n{}    esac\n    \
         [ -n \"$kind\" ] && return\n    case \"$2\" in\n{}    esac\n}}\n",
        branches(AFTER_OPTION),
        branches(AFTER_VERB)
    )
}

const BASH: &str = r#"
_clover_with_ids() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" kind verb='' word id
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in -*) ;; *) verb="${verb:+$verb }$word" ;; esac
    done
    _clover_id_kind "$prev" "$verb"
    if [ -n "$kind" ] && [ "${cur#-}" = "$cur" ]; then
        COMPREPLY=()
        while IFS= read -r id; do
            case "$id" in "$cur"*) COMPREPLY+=("$id") ;; esac
        done < <(clover ids "$kind" 2>/dev/null)
        [ "${#COMPREPLY[@]}" -gt 0 ] && return
    fi
    _clover "$@"
}
"#;

const ZSH: &str = r#"
_clover_with_ids() {
    local kind verb='' word
    local -a found
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$word" in -*) ;; *) verb="${verb:+$verb }$word" ;; esac
    done
    _clover_id_kind "${words[CURRENT-1]}" "$verb"
    if [ -n "$kind" ] && [ "${words[CURRENT]#-}" = "${words[CURRENT]}" ]; then
        found=("${(@f)$(clover ids "$kind" 2>/dev/null)}")
        [ -n "${found[1]}" ] && compadd -- "${found[@]}" && return
    fi
    _clover "$@"
}

"#;

/// A script with ids of the ledger where a verb or an option takes one.
pub(super) fn with_ids(shell: clap_complete::Shell, script: &str) -> String {
    use clap_complete::Shell;
    match shell {
        Shell::Bash => {
            let (head, tail) = script.rsplit_once("\nif [[").unwrap_or((script, ""));
            let tail = tail.replace("complete -F _clover ", "complete -F _clover_with_ids ");
            format!("{head}\n{}{BASH}\nif [[{tail}", finding())
        }
        Shell::Zsh => {
            let (head, tail) = script
                .rsplit_once("if [ \"$funcstack[1]\"")
                .unwrap_or((script, ""));
            // What is loaded by itself is known by its own name from then on.
            let first = "    compdef _clover_with_ids clover\n    _clover_with_ids \"$@\"";
            let tail = tail.replace("    _clover \"$@\"", first);
            let tail = tail.replace("compdef _clover clover", "compdef _clover_with_ids clover");
            format!("{head}{}{ZSH}if [ \"$funcstack[1]\"{tail}", finding())
        }
        Shell::Fish => format!("{script}{}", fish()),
        _ => script.to_owned(),
    }
}

fn fish() -> String {
    let mut out = String::new();
    for (option, kind) in AFTER_OPTION {
        let (option, kind) = (option.trim_start_matches('-'), crate::view::word(kind));
        writeln!(
            out,
            "complete -c clover -l {option} -x -a \"(clover ids {kind} 2>/dev/null)\""
        )
        .expect("BUG: a String takes every write");
    }
    for (verb, kind) in AFTER_VERB {
        let seen: Vec<_> = verb
            .split(' ')
            .map(|word| format!("__fish_seen_subcommand_from {word}"))
            .collect();
        let (seen, kind) = (seen.join("; and "), crate::view::word(kind));
        writeln!(
            out,
            "complete -c clover -n \"{seen}\" -f -a \"(clover ids {kind} 2>/dev/null)\""
        )
        .expect("BUG: a String takes every write");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    #[test]
    fn tables_name_verbs_and_options_that_take_something() {
        let mut whole = command();
        whole.build();
        for (path, _) in AFTER_VERB {
            let mut at = &whole;
            for word in path.split(' ') {
                let inner = at.find_subcommand(word);
                at = inner.unwrap_or_else(|| panic!("{path} is no verb"));
            }
            assert!(
                at.get_positionals().next().is_some(),
                "{path} takes nothing"
            );
        }
        assert!(AFTER_VERB.is_sorted_by(|(one, _), (two, _)| one < two));
        let help: String = [
            "gate observe",
            "judge compare",
            "import labels",
            "patch check",
        ]
        .iter()
        .map(|verb| {
            let words = std::iter::once("clover")
                .chain(verb.split(' '))
                .chain(["--help"]);
            let help = command().try_get_matches_from(words).unwrap_err();
            help.render().to_string()
        })
        .collect();
        for (option, _) in AFTER_OPTION {
            assert!(
                help.contains(&format!("{option} ")) || *option == "--judge",
                "{option}"
            );
        }
    }

    #[test]
    fn scripts_ask_for_ids_before_anything_else() {
        use clap_complete::Shell;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let view =
                crate::cli::completions::shell(&crate::cli::completions::CompletionArgs { shell });
            let script = view.text();
            assert!(script.contains("clover ids"), "{shell}");
            assert!(
                script.contains("gate decide") || script.contains("from decide"),
                "{shell}"
            );
            assert!(
                shell == Shell::Fish || script.matches("_clover_with_ids").count() >= 2,
                "{shell}"
            );
        }
        let view = crate::cli::completions::shell(&crate::cli::completions::CompletionArgs {
            shell: Shell::Bash,
        });
        assert!(!view.text().contains("complete -F _clover "));
    }
}
