//! Four families of tasks that are made from seeds, each in a general and a local context.
//!
//! A first program was written for the general one. The local one has rules that its prompt does not know: the simulated
//! model ignores each until the prompt holds a token of it, and now and then loses a member where many are asked for
//! at once. One local slip of each family breaks no rule, so that a verifier by rules alone is sometimes wrong.
//! The first program of tickets asks in two steps, so that blame has a step to choose.

use clover_ground::seed::SeedTree;
use clover_num::draws::Draws;

use crate::number::Number;
use crate::number::Ties;
use crate::value::Data;

/// A family of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Invoices read into a record, under a local schema.
    Invoices,
    /// Replies to customers, bound by a policy.
    Replies,
    /// Sums of tables, with local conventions.
    Tables,
    /// Tickets of a help desk, sorted in one step and planned in another.
    Tickets,
}

/// Where items come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The context that the first program was written for.
    General,
    /// The context that it meets.
    Local,
}

/// Members of one item.
struct Made {
    x: Data,
    c: Data,
    truth: Data,
    answer: Data,
    slips: Vec<Data>,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 4] = [Self::Invoices, Self::Replies, Self::Tables, Self::Tickets];

    /// The word of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invoices => "invoices",
            Self::Replies => "replies",
            Self::Tables => "tables",
            Self::Tickets => "tickets",
        }
    }

    /// The workflow that was written for the general context, as JSON.
    pub fn first_program(self) -> &'static str {
        match self {
            Self::Invoices => include_str!("invoices.json"),
            Self::Replies => include_str!("replies.json"),
            Self::Tables => include_str!("tables.json"),
            Self::Tickets => include_str!("tickets.json"),
        }
    }

    /// A set of so many items, as JSON Lines.
    ///
    /// # Panics
    /// Never: the rules of a family are JSON, which a test reads.
    pub fn lines(self, split: Split, seed: u64, items: usize) -> String {
        let (word, rules) = match split {
            Split::General => ("general", self.general_rules()),
            Split::Local => ("local", self.local_rules()),
        };
        let rules = Data::parse(rules, 1 << 16).expect("BUG: rules are JSON");
        let head = Data::object([
            ("task_set", super::LANGUAGE.into()),
            ("family", self.as_str().into()),
            ("rules", rules),
        ]);
        let tree = SeedTree::of_number(seed).child(self.as_str()).child(word);
        let mut out = format!("{head}\n");
        for at in 0..items {
            let mut draws = Draws::of(tree.seed(), at);
            let made = match self {
                Self::Invoices => invoice(&mut draws, split),
                Self::Replies => reply(&mut draws, split),
                Self::Tables => table(&mut draws, split),
                Self::Tickets => ticket(&mut draws, split),
            };
            let line = Data::object([
                ("id", Data::Text(format!("{word}-{at}"))),
                ("input", Data::object([("x", made.x), ("c", made.c)])),
                ("truth", made.truth),
                (
                    "sim",
                    Data::object([("answer", made.answer), ("slips", Data::List(made.slips))]),
                ),
            ]);
            out.push_str(&format!("{line}\n"));
        }
        out
    }

    fn general_rules(self) -> &'static str {
        match self {
            Self::Invoices => {
                r#"[{"id":"date","text":"Write the date as YYYY-MM-DD.","weight":2,"check":{"op":"regex","path":"y.date","pattern":"^\\d{4}-\\d\\d-\\d\\d$"}},
                {"id":"total","text":"total is a number above 0.","check":{"op":"gt","a":{"path":"y.total"},"b":{"const":0}}}]"#
            }
            Self::Replies => {
                r#"[{"id":"decision","text":"decision is refund, credit or decline.","check":{"op":"in","a":{"path":"y.decision"},"b":{"const":["refund","credit","decline"]}}},
                {"id":"order","text":"The reply names the order.","check":{"op":"in","a":{"path":"x.order"},"b":{"path":"y.reply"}}}]"#
            }
            Self::Tables => {
                r#"[{"id":"total","text":"total is text with two decimals.","check":{"op":"regex","path":"y.total","pattern":"^\\d+\\.\\d\\d$"}},
                {"id":"lines","text":"lines is the number of lines.","check":{"op":"eq","a":{"path":"y.lines"},"b":{"op":"len","path":"x.rows"}}}]"#
            }
            Self::Tickets => {
                r#"[{"id":"priority","text":"priority is high, normal or low.","check":{"op":"in","a":{"path":"y.priority"},"b":{"const":["high","normal","low"]}}},
                {"id":"due","text":"Write due as YYYY-MM-DD.","check":{"op":"regex","path":"y.due","pattern":"^\\d{4}-\\d\\d-\\d\\d$"}}]"#
            }
        }
    }

    fn local_rules(self) -> &'static str {
        match self {
            Self::Invoices => {
                r#"[{"id":"date","text":"Write the date as DD.MM.YYYY.","weight":2,"check":{"op":"regex","path":"y.date","pattern":"^\\d\\d\\.\\d\\d\\.\\d{4}$"}},
                {"id":"currency","text":"currency is a code of three letters, such as EUR.","check":{"op":"in","a":{"path":"y.currency"},"b":{"path":"c.currencies"}}},
                {"id":"total","text":"total is a number above 0.","check":{"op":"gt","a":{"path":"y.total"},"b":{"const":0}}},
                {"id":"vendor","text":"vendor is there.","hard":false,"check":{"op":"exists","path":"y.vendor"}}]"#
            }
            Self::Replies => {
                r#"[{"id":"window","text":"After the return window of c.window days, give credit and no refund.","weight":2,"check":{"op":"or","of":[{"op":"le","a":{"path":"x.days"},"b":{"path":"c.window"}},{"op":"eq","a":{"path":"y.decision"},"b":{"const":"credit"}}]}},
                {"id":"order","text":"The reply names the order.","check":{"op":"in","a":{"path":"x.order"},"b":{"path":"y.reply"}}},
                {"id":"signed","text":"The reply ends with: Your service desk","check":{"op":"regex","path":"y.reply","pattern":"Your service desk$"}},
                {"id":"amount","text":"amount is there.","hard":false,"check":{"op":"exists","path":"y.amount"}}]"#
            }
            Self::Tables => {
                r#"[{"id":"total","text":"total is text, rounded to the next 0.05 as Swiss prices are.","weight":2,"check":{"op":"regex","path":"y.total","pattern":"^\\d+\\.\\d[05]$"}},
                {"id":"currency","text":"currency is CHF.","check":{"op":"eq","a":{"path":"y.currency"},"b":{"const":"CHF"}}},
                {"id":"lines","text":"lines is the number of lines.","check":{"op":"eq","a":{"path":"y.lines"},"b":{"op":"len","path":"x.rows"}}},
                {"id":"tax","text":"tax is there.","hard":false,"check":{"op":"exists","path":"y.tax"}}]"#
            }
            Self::Tickets => {
                r#"[{"id":"priority","text":"priority is P1, P2 or P3.","check":{"op":"regex","path":"y.priority","pattern":"^P[123]$"}},
                {"id":"due","text":"Write due as DD.MM.YYYY.","weight":2,"check":{"op":"regex","path":"y.due","pattern":"^\\d\\d\\.\\d\\d\\.\\d{4}$"}},
                {"id":"queue","text":"queue is a code of the desk, such as Q-NET.","check":{"op":"in","a":{"path":"y.queue"},"b":{"path":"c.queues"}}},
                {"id":"contact","text":"contact is there.","hard":false,"check":{"op":"exists","path":"y.contact"}}]"#
            }
        }
    }
}

fn number(millionths: i128) -> Data {
    Data::Number(Number::of_millionths(millionths).unwrap_or_default())
}

fn count(count: usize) -> Data {
    Data::Number(Number::of_count(count))
}

/// Cents, as a number.
fn cents(cents: usize) -> Data {
    number(cents as i128 * 10_000)
}

/// Cents, as text with two decimals.
fn price(cents: usize) -> Data {
    Data::Text(format!("{}.{:02}", cents / 100, cents % 100))
}

/// A slip: `(id, probability in millionths)`, the token that ends it, and what becomes of the answer.
fn ignores((id, p): (&str, i128), until: Option<&str>, path: &str, value: Data) -> Data {
    let mut slip = Data::object([
        ("id", id.into()),
        ("p", number(p)),
        ("fault", "ignore_rule".into()),
        ("path", path.into()),
        ("value", value),
    ]);
    if let (Data::Object(members), Some(until)) = (&mut slip, until) {
        members.insert("until".to_owned(), until.into());
    }
    slip
}

/// A slip: a member is lost where at least three are asked for at once.
fn loses(p: i128, path: &str) -> Data {
    Data::object([
        ("id", "lost".into()),
        ("p", number(p)),
        ("fault", "drop_field".into()),
        ("path", path.into()),
        ("together", count(3)),
    ])
}

fn pick<'a>(draws: &mut Draws, of: &[&'a str]) -> &'a str {
    of[draws.below(of.len())]
}

fn invoice(draws: &mut Draws, split: Split) -> Made {
    let vendor = pick(
        draws,
        &[
            "Baker GmbH",
            "Lindt & Sons",
            "Orsini SpA",
            "Nord Papier",
            "Vale Ltd",
        ],
    );
    let (day, month) = (1 + draws.below(28), 1 + draws.below(12));
    let total = 1_000 + draws.below(500_000);
    let (code, word) = [("EUR", "euros"), ("USD", "dollars"), ("CHF", "francs")][draws.below(3)];
    let text = format!(
        "Invoice {} of {vendor}, dated 2026-{month:02}-{day:02}: {} items, {}.{:02} {word} in all.",
        1_000 + draws.below(9_000),
        1 + draws.below(9),
        total / 100,
        total % 100,
    );
    let iso = format!("2026-{month:02}-{day:02}");
    let date = match split {
        Split::General => iso.clone(),
        Split::Local => format!("{day:02}.{month:02}.2026"),
    };
    let answer = Data::object([
        ("vendor", vendor.into()),
        ("date", date.as_str().into()),
        ("total", cents(total)),
        ("currency", code.into()),
    ]);
    let slips = match split {
        Split::General => vec![loses(80_000, "vendor")],
        Split::Local => vec![
            ignores(
                ("iso-date", 950_000),
                Some("DD.MM.YYYY"),
                "date",
                iso.as_str().into(),
            ),
            ignores(
                ("word", 900_000),
                Some("three letters"),
                "currency",
                word.into(),
            ),
            ignores(("total", 100_000), None, "total", cents(total + 100)),
            loses(250_000, "total"),
        ],
    };
    let currencies = ["EUR", "USD", "CHF"].map(Data::from).to_vec();
    Made {
        x: Data::object([("text", Data::Text(text))]),
        c: Data::object([("currencies", Data::List(currencies))]),
        truth: answer.clone(),
        answer,
        slips,
    }
}

fn reply(draws: &mut Draws, split: Split) -> Made {
    let order = format!("A-{}", 10_000 + draws.below(90_000));
    let (paid, days) = (500 + draws.below(20_000), 1 + draws.below(60));
    let complaint = pick(
        draws,
        &[
            "It came broken.",
            "It does not fit.",
            "It never worked.",
            "The colour is wrong.",
        ],
    );
    let window = match split {
        Split::General => 60,
        Split::Local => 14,
    };
    let late = days > window;
    let decision = if late { "credit" } else { "refund" };
    let end = match split {
        Split::General => "",
        Split::Local => " Your service desk",
    };
    let body = |decision: &str| format!("About your order {order}: we give you a {decision}.");
    let answer = Data::object([
        ("decision", decision.into()),
        ("amount", cents(paid)),
        ("reply", Data::Text(format!("{}{end}", body(decision)))),
    ]);
    let mut slips = vec![loses(80_000, "amount")];
    if split == Split::Local {
        slips = vec![
            ignores(
                ("unsigned", 950_000),
                Some("Your service desk"),
                "reply",
                Data::Text(body(decision)),
            ),
            ignores(("amount", 100_000), None, "amount", cents(paid / 2)),
            loses(250_000, "decision"),
        ];
        // Most are late: the window is what the first program does not know.
        slips.push(ignores(
            ("window", 950_000),
            Some("return window"),
            "decision",
            "refund".into(),
        ));
    }
    Made {
        x: Data::object([
            ("order", order.as_str().into()),
            ("days", count(days)),
            ("paid", cents(paid)),
            ("text", complaint.into()),
        ]),
        c: Data::object([("window", count(window))]),
        truth: Data::object([("decision", decision.into()), ("amount", cents(paid))]),
        answer,
        slips,
    }
}

fn table(draws: &mut Draws, split: Split) -> Made {
    let lines = 2 + draws.below(4);
    let (mut rows, mut net) = (Vec::new(), 0);
    for _ in 0..lines {
        let (quantity, each) = (1 + draws.below(9), 100 + draws.below(5_000));
        net += quantity * each;
        let item = pick(draws, &["bolt", "hinge", "panel", "lamp", "rail"]);
        rows.push(Data::object([
            ("item", item.into()),
            ("quantity", count(quantity)),
            ("price", price(each)),
        ]));
    }
    let rate = match split {
        Split::General => 200,
        Split::Local => 81,
    };
    let exact = Number::of_millionths((net * rate) as i128 * 10).unwrap_or_default();
    let tax = exact.round(2, Ties::Away).unwrap_or_default();
    let tax_cents = usize::try_from(tax.millionths() / 10_000).unwrap_or(0);
    let total = net + tax_cents;
    let (paid, currency) = match split {
        Split::General => (total, "EUR"),
        Split::Local => ((total + 2) / 5 * 5, "CHF"),
    };
    let answer = Data::object([
        ("tax", Data::Number(tax)),
        ("total", price(paid)),
        ("currency", currency.into()),
        ("lines", count(lines)),
    ]);
    let odd = if total % 5 == 0 { total + 1 } else { total };
    let slips = match split {
        Split::General => vec![loses(80_000, "tax")],
        Split::Local => vec![
            ignores(("cents", 950_000), Some("0.05"), "total", price(odd)),
            ignores(("euro", 900_000), Some("CHF"), "currency", "EUR".into()),
            ignores(("tax", 100_000), None, "tax", cents(tax_cents + 1)),
            loses(250_000, "lines"),
        ],
    };
    Made {
        x: Data::object([("rows", Data::List(rows))]),
        c: Data::object([("rate", number(rate as i128 * 1_000))]),
        truth: answer.clone(),
        answer,
        slips,
    }
}

fn ticket(draws: &mut Draws, split: Split) -> Made {
    let (product, word, code) = [
        ("router", "network", "Q-NET"),
        ("printer", "devices", "Q-DEV"),
        ("ledger", "software", "Q-SOFT"),
    ][draws.below(3)];
    let (urgency, rank, days) =
        [("high", "P1", 1), ("normal", "P2", 3), ("low", "P3", 9)][draws.below(3)];
    let contact = pick(draws, &["Ada", "Boris", "Chen", "Dana"]);
    let (day, month) = (1 + draws.below(18), 1 + draws.below(12));
    let iso = |day: usize| format!("2026-{month:02}-{day:02}");
    let local = |day: usize| format!("{day:02}.{month:02}.2026");
    let due = day + days;
    let answer = |queue: &str, priority: &str, due: String| {
        Data::object([
            ("product", product.into()),
            ("queue", queue.into()),
            ("priority", priority.into()),
            ("due", Data::Text(due)),
            ("contact", contact.into()),
        ])
    };
    let (answer, slips) = match split {
        Split::General => (
            answer(word, urgency, iso(due)),
            vec![loses(80_000, "product")],
        ),
        Split::Local => (
            answer(code, rank, local(due)),
            vec![
                ignores(
                    ("iso-date", 950_000),
                    Some("DD.MM.YYYY"),
                    "due",
                    Data::Text(iso(due)),
                ),
                ignores(("contact", 100_000), None, "contact", "the desk".into()),
                ignores(
                    ("urgency", 900_000),
                    Some("P1, P2"),
                    "priority",
                    urgency.into(),
                ),
                ignores(("word", 900_000), Some("Q-NET"), "queue", word.into()),
                loses(250_000, "queue"),
            ],
        ),
    };
    let text = format!("{contact} writes: the {product} failed again, urgency {urgency}.");
    let queues = ["Q-NET", "Q-DEV", "Q-SOFT"].map(Data::from).to_vec();
    Made {
        x: Data::object([("text", Data::Text(text)), ("opened", Data::Text(iso(day)))]),
        c: Data::object([("queues", Data::List(queues))]),
        truth: answer.clone(),
        answer,
        slips,
    }
}
