//! JSON Schemas of the numbers, and the one way to write such a schema by hand.

use crate::Count;
use crate::Finite;
use crate::Micro;
use crate::Probability;

/// Gives types a schema under a name, written in place wherever they stand.
#[macro_export]
macro_rules! schema {
    ($($ty:ty, $name:literal => $schema:tt;)*) => {$(
        impl schemars::JsonSchema for $ty {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    )*};
}

schema! {
    Count, "Count" => {"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64};
    Finite, "Finite" => {"type": "number"};
    Probability, "Probability" => {"type": "number", "minimum": 0, "maximum": 1};
    Micro, "Micro" => {"type": "integer", "minimum": -1_000_000_000_000_i64, "maximum": 1_000_000_000_000_i64};
}
