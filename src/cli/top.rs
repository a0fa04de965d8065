//! What `clover --help` shows: every verb, every option of all verbs, every exit code.

/// The help.
pub(super) const TOP: &str = "\
Clover: an event-sourced experiment ledger for governing LLM judges

Usage: clover [OPTIONS] VERB …                  (clover VERB --help shows one of them)

  start    guide · init · demo · status · doctor · simulate dataset|truth|iteration · completions · ids · man
  keys     key new|request|admit|list|show|export|retire|compromise|rotate-log · rulebook · erase
  write    record · sign · submit · sync · append · import cje|csv|events|ledger · blob · experiment · use · retain
  plan     prereg · family · assume · budget    gate  gate · exposure    improve  rubric · patch · iterate · judge · repair
  labels   label design new|list · seal · confirm status|seal|unseal · access    attack  battery    tune  synth · sgd · workflow · meta
  read     log · show · at · schema · score list|show · report · campaign     release  approve · prompt · deploy · generator
  worth    estimate · compare · calibrate · plan · analyze · qualify    audit  audit · regime · replay
  prove    verify · prove · checkpoint show|pin|compare · export jsonl|tiles · backup · restore    models  endpoint · cassette · price

Options of every verb:
  --ledger DIR              the ledger's folder [CLOVER_LEDGER; else searched upward from here]
  --key FILE|NAME           the key that signs [CLOVER_KEY; else the one key that may]
  --passphrase-file FILE    passphrase of that key [CLOVER_PASSPHRASE; else asked]
  --json                    one JSON object {ok,verdict,exit,events,checkpoint,data,warnings,next}
  --render text|markdown|html   how an answer is set      -q, --quiet    no notes and no progress
  --busy-timeout SECONDS  --progress auto|never|plain  --color auto|always|never  --clock-ahead

Exit codes: 0 done · 1 unexpected · 2 usage · 3 integrity · 4 bad input · 5 not found · 10 failed
            11 refused by a rule · 12 undecided or NOT CHECKED · 75 try later · 130 interrupted
Example: clover demo";
