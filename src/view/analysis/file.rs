//! An analysis as a file: numbers, a plot, or one page without scripts or outside references.

use crate::report::forest::escaped;
use crate::report::page;
use crate::view::View;
use crate::view::analysis::AnalysisShown;
use crate::view::analysis::EXPLORATORY;
use crate::view::analysis::interval;
use crate::view::analysis::level;
use crate::view::text::escape;

/// What a file is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// The facts.
    Json,
    /// A plot of the values.
    Svg,
    /// A page.
    Html,
}

impl AnalysisShown<'_> {
    /// The text of a file.
    pub fn file(&self, format: FileFormat) -> String {
        match format {
            FileFormat::Json => {
                let view = View::of(&self.facts());
                format!("{:#}\n", view.facts())
            }
            FileFormat::Svg => self.values_plot().svg(),
            FileFormat::Html => self.page(),
        }
    }

    /// One page without scripts or outside references.
    fn page(&self) -> String {
        let mut out = page::top("Policy values - Clover", "");
        let mut put = |line: String| {
            out.push('\n');
            out.push_str(&line);
        };
        put("<body>\n<a class=\"skip\" href=\"#main\">To the values</a>\n<header>\n<p class=\"kicker\">Clover</p>".to_owned());
        put(format!(
            "<h1>Policy values</h1>\n</header>\n<main id=\"main\">\n<div class=\"gap\"><p>{EXPLORATORY}. Source {}; {}.</p></div>",
            escaped(&self.source),
            escaped(&self.method()),
        ));
        let drawing = |svg: &str, name: &str| {
            let of = format!("aria-label=\"{name}, drawn\"");
            let open = page::scroller(&of, "The drawing is wider");
            format!("<figure>\n{open}\n{svg}{}\n</figure>", page::SCROLLED)
        };
        put(drawing(&self.values_plot().svg(), "Policy values"));
        put(format!(
            "{}<table>\n<caption id=\"values\">Policy values</caption>\n<thead><tr>\
             <th scope=\"col\">policy</th><th scope=\"col\">level</th><th scope=\"col\" class=\"n\">value</th>\
             <th scope=\"col\" class=\"n\">{} % interval</th><th scope=\"col\" class=\"n\">labels alone</th>\
             <th scope=\"col\" class=\"n\">labels</th><th scope=\"col\" class=\"n\">rows</th></tr></thead>\n<tbody>",
            page::scroller("aria-labelledby=\"values\"", "More columns"),
            self.percent()
        ));
        for policy in &self.analysis.policies {
            put(format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escaped(&policy.name),
                level(policy),
                self.number(policy.estimate),
                interval(policy).map_or("none".to_owned(), |of| self.bracket(of)),
                self.alone(policy),
                policy.labelled,
                policy.rows,
            ));
        }
        put(format!("</tbody>\n</table>\n{}", page::SCROLLED));
        if !self.analysis.differences.is_empty() {
            put(drawing(&self.differences_plot().svg(), "Differences"));
        }
        put("<ul>".to_owned());
        for remark in self.remarks() {
            put(format!("<li>{}</li>", escaped(&escape(&remark))));
        }
        put("</ul>\n</main>\n</body>\n</html>\n".to_owned());
        out
    }
}
