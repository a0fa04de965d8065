//! An analysis as a file: numbers, a plot, or one page without scripts or outside references.

use crate::report::forest::escaped;
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
        let mut out = String::from(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Policy values</title>\n\
             <style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
             color:#1d232b}table{border-collapse:collapse;margin:1rem 0}td,th{padding:.3rem .8rem .3rem 0;\
             text-align:left;border-bottom:1px solid #e3e6ea;font-variant-numeric:tabular-nums}\
             .banner{background:#fff4d6;padding:.6rem 1rem;border-radius:.4rem}svg{max-width:100%;height:auto}\
             </style></head><body>\n",
        );
        let mut put = |line: String| {
            out.push_str(&line);
            out.push('\n');
        };
        put(format!(
            "<h1>Policy values</h1><p class=\"banner\">{EXPLORATORY}. Source {}; {}.</p>",
            escaped(&self.source),
            escaped(&self.method()),
        ));
        put(self.values_plot().svg());
        put(format!(
            "<table><tr><th>policy</th><th>value</th><th>{} % interval</th><th>labels alone</th><th>labels</th>\
             <th>rows</th><th>level</th></tr>",
            self.percent()
        ));
        for policy in &self.analysis.policies {
            put(format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(&policy.name),
                self.number(policy.estimate),
                interval(policy).map_or("none".to_owned(), |of| self.bracket(of)),
                self.alone(policy),
                policy.labelled,
                policy.rows,
                level(policy),
            ));
        }
        put("</table>".to_owned());
        if !self.analysis.differences.is_empty() {
            put(self.differences_plot().svg());
        }
        put("<ul>".to_owned());
        for remark in self.remarks() {
            put(format!("<li>{}</li>", escaped(&escape(&remark))));
        }
        put("</ul></body></html>".to_owned());
        out
    }
}
