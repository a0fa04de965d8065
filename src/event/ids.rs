//! Every id of a value, wherever it stands: ids say what they are where they are written.

use std::fmt;

use serde::Serialize;
use serde::Serializer;
use serde::ser;

/// The name under which an id is written.
pub const ID: &str = "clover/id";

/// Calls `see` with each id of a value, in the order in which it is written.
pub fn each_id<T: Serialize + ?Sized>(value: &T, see: &mut dyn FnMut(&str)) {
    // A value that cannot be written has no further ids.
    value.serialize(&mut Walk { see, is_id: false }).ok();
}

/// A value that refuses to be written has no ids.
#[derive(Debug)]
struct WriteError;

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that cannot be written")
    }
}

impl std::error::Error for WriteError {}

impl ser::Error for WriteError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Walk<'s> {
    see: &'s mut dyn FnMut(&str),
    is_id: bool,
}

type WalkResult = Result<(), WriteError>;

macro_rules! nothing {
    ($($name:ident($($ty:ty),*);)*) => {$(
        fn $name(self, $(_: $ty),*) -> WalkResult {
            Ok(())
        }
    )*};
}

macro_rules! inside {
    ($($name:ident($($ty:ty),*);)*) => {$(
        fn $name(self, $(_: $ty),*) -> Result<Self, WriteError> {
            Ok(self)
        }
    )*};
}

impl Serializer for &mut Walk<'_> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    nothing! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    inside! {
        serialize_seq(Option<usize>);
        serialize_tuple(usize);
        serialize_tuple_struct(&'static str, usize);
        serialize_tuple_variant(&'static str, u32, &'static str, usize);
        serialize_map(Option<usize>);
        serialize_struct(&'static str, usize);
        serialize_struct_variant(&'static str, u32, &'static str, usize);
    }

    fn serialize_str(self, text: &str) -> WalkResult {
        if std::mem::take(&mut self.is_id) {
            (self.see)(text);
        }
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> WalkResult {
        value.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> WalkResult {
        self.is_id = name == ID;
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> WalkResult {
        value.serialize(self)
    }
}

macro_rules! elements {
    ($($of:ident $name:ident;)*) => {$(
        impl ser::$of for &mut Walk<'_> {
            type Ok = ();
            type Error = WriteError;
            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> WalkResult {
                value.serialize(&mut **self)
            }
            fn end(self) -> WalkResult {
                Ok(())
            }
        }
    )*};
}
elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($of:ident;)*) => {$(
        impl ser::$of for &mut Walk<'_> {
            type Ok = ();
            type Error = WriteError;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> WalkResult {
                value.serialize(&mut **self)
            }
            fn end(self) -> WalkResult {
                Ok(())
            }
        }
    )*};
}
fields! {
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for &mut Walk<'_> {
    type Ok = ();
    type Error = WriteError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> WalkResult {
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> WalkResult {
        value.serialize(&mut **self)
    }
    fn end(self) -> WalkResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::id::ExperimentId;
    use crate::id::ItemId;
    use crate::id::Text;

    #[test]
    fn ids_are_met_wherever_they_stand_and_texts_are_not() {
        let item = |text: &str| ItemId::new(text).unwrap();
        let value = (
            Text::new("no id").unwrap(),
            Some(ExperimentId::new("e").unwrap()),
            BTreeMap::from([(item("key"), vec![item("a"), item("b")])]),
            ("plain", 7, None::<ItemId>),
        );
        let mut met = Vec::new();
        each_id(&value, &mut |id| met.push(id.to_owned()));
        assert_eq!(met, ["e", "key", "a", "b"]);
        assert_eq!(
            serde_json::to_string(&value.2).unwrap(),
            r#"{"key":["a","b"]}"#
        );
    }
}
