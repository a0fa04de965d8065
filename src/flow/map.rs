//! The functions of map steps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::memory::Fuel;
use crate::memory::Memory;
use crate::path::Path;
use crate::template::Template;
use crate::trace::CrashReason;
use crate::value::Data;
use crate::workflow::MapFunction;

/// Why a function has no value.
type Crashing = (CrashReason, String);

fn wrong(path: &Path, wanted: &str) -> Crashing {
    let detail = format!("expected {wanted} at {path}");
    (CrashReason::Type, detail)
}

fn spent(spent: crate::memory::Spent) -> Crashing {
    (CrashReason::Bound, spent.to_string())
}

fn any<'a>(memory: &'a Memory, path: &Path) -> Result<&'a Data, Crashing> {
    let value = memory.find(path);
    let value = value.ok_or_else(|| (CrashReason::Type, format!("nothing stands at {path}")))?;
    memory.fuel.spend(value.weight()).map_err(spent)?;
    Ok(value)
}

fn text<'a>(memory: &'a Memory, path: &Path) -> Result<&'a str, Crashing> {
    let value = any(memory, path)?;
    value.as_text().ok_or_else(|| wrong(path, "a text"))
}

/// A filled template of at most `text_max` bytes: each value is paid for before it is written down.
pub(crate) fn fill<'a>(
    template: &Template,
    fuel: &Fuel,
    text_max: usize,
    mut find: impl FnMut(&Path) -> Option<Cow<'a, Data>>,
) -> Result<String, Crashing> {
    let (mut bytes, mut paid) = (template.as_str().len(), Ok(()));
    let filled = template.fill(|path| {
        let value = find(path)?;
        bytes = bytes.saturating_add(value.weight());
        paid = paid.and_then(|()| fuel.spend(value.weight()));
        // What is written of a value takes at least a sixteenth of its weight.
        (paid.is_ok() && bytes <= 16 * text_max).then_some(value)
    });
    paid.map_err(spent)?;
    if bytes > 16 * text_max || filled.as_ref().is_ok_and(|text| text.len() > text_max) {
        let detail = format!("a text of more than {text_max} bytes");
        return Err((CrashReason::Bound, detail));
    }
    let nothing = |path| (CrashReason::Type, format!("nothing stands at {path}"));
    filled.map_err(nothing)
}

/// The value of a function; a text has at most `text_max` bytes.
pub(crate) fn apply(
    function: &MapFunction,
    memory: &Memory,
    text_max: usize,
) -> Result<Data, Crashing> {
    match function {
        MapFunction::Select(path) => any(memory, path).cloned(),
        MapFunction::Merge(paths) => {
            let mut all = BTreeMap::new();
            for path in paths {
                let Data::Object(members) = any(memory, path)? else {
                    return Err(wrong(path, "an object"));
                };
                all.extend(members.clone());
            }
            Ok(Data::Object(all))
        }
        MapFunction::ParseJson(path) => {
            let text = text(memory, path)?;
            let read = Data::parse(text.trim(), text_max);
            read.map_err(|fault| {
                let detail = format!("{path} holds no JSON: {}", fault.unquoted());
                (CrashReason::Parse, detail)
            })
        }
        MapFunction::Regex {
            path,
            pattern,
            group,
            otherwise,
        } => {
            let text = text(memory, path)?;
            memory.fuel.spend_match(pattern, text).map_err(spent)?;
            match (pattern.group(text, *group), otherwise) {
                (Some(found), _) => Ok(Data::text(found)),
                (None, Some(otherwise)) => Ok(otherwise.clone()),
                (None, None) => {
                    let detail = format!("no match of the pattern at {path}");
                    Err((CrashReason::Parse, detail))
                }
            }
        }
        MapFunction::Lower(path) => Ok(Data::Text(text(memory, path)?.to_ascii_lowercase())),
        MapFunction::Round {
            path,
            decimals,
            ties,
        } => {
            let number = any(memory, path)?.as_number();
            let number = number.ok_or_else(|| wrong(path, "a number"))?;
            let rounded = number.round(*decimals, *ties);
            let rounded = rounded.ok_or_else(|| wrong(path, "a number in range once rounded"))?;
            Ok(Data::Number(rounded))
        }
        MapFunction::Lookup {
            path,
            table,
            otherwise,
        } => {
            let key = match any(memory, path)? {
                Data::Text(text) => Cow::Borrowed(text.as_str()),
                Data::Number(number) => Cow::Owned(number.to_string()),
                _ => return Err(wrong(path, "a text or a number")),
            };
            let found = table.get(&*key).or(otherwise.as_ref());
            let detail = || format!("the table has nothing for what stands at {path}");
            found.cloned().ok_or_else(|| (CrashReason::Type, detail()))
        }
        MapFunction::Concat(template) => {
            let find = |path: &Path| memory.find(path).map(Cow::Borrowed);
            Ok(Data::Text(fill(template, &memory.fuel, text_max, find)?))
        }
        MapFunction::Const(value) => Ok(value.clone()),
    }
}
