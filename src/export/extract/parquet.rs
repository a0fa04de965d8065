//! The tables of `csv` as Apache Parquet, a file per table, for DuckDB, Polars, Spark and pandas.
//!
//! An amount is its exact decimal as text, beside it a double under the same name with `_float`. Text is as it was
//! recorded: no cell is changed, since nothing here runs formulas.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::RecordBatch;
use arrow_array::builder::Float64Builder;
use arrow_array::builder::Int64Builder;
use arrow_array::builder::StringBuilder;
use arrow_array::builder::TimestampMicrosecondBuilder;
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::Schema;
use arrow_schema::TimeUnit;
use clover_num::Micro;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::basic::ZstdLevel;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use super::Extract;
use super::RecordedEvent;
use super::create;
use super::csv;
use super::csv::CsvTable;
use super::csv::ToldData;
use super::data;
use crate::ExportError;
use crate::Progress;

/// Rows that are held before they are written.
const ROWS: usize = 8_192;
/// Ending of the column of doubles beside a decimal.
const FLOAT: &str = "_float";
/// Times are in UTC.
const UTC: &str = "UTC";

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        std::io::Error::other(error).into()
    }
}

/// Writes every table into a folder; answers with the rows of all.
pub(super) fn write(
    extract: &Extract<'_>,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let origin = extract.origin().to_string();
    let mut open = Vec::with_capacity(csv::TABLES.len());
    for table in csv::TABLES {
        let stem = table.file.trim_end_matches(".csv");
        let out = create(folder, &format!("{stem}.parquet"))?;
        open.push(ParquetTable::new(table, out, &origin)?);
    }
    let mut rows = 0;
    extract.each(progress, |said| {
        let found = data(said)?;
        let told = ToldData::of(extract, said, &found);
        let kind = said.event.kind();
        for table in open
            .iter_mut()
            .filter(|open| open.table.kinds.contains(&kind))
        {
            let withholds = |column: &str| extract.withholds(said.seq, column);
            table.row(said, told.of_table(table.table), &withholds)?;
            rows += 1;
        }
        Ok(())
    })?;
    for table in open {
        table.close()?;
    }
    Ok(rows)
}

/// A column that is being filled.
enum Column {
    /// Exact decimals, with doubles beside them.
    Decimal(StringBuilder, Float64Builder),
    Double(Float64Builder),
    Integer(Int64Builder),
    Text(StringBuilder),
    Time(TimestampMicrosecondBuilder),
}

impl Column {
    fn new(datatype: &str) -> Self {
        match datatype {
            "decimal" => Self::Decimal(StringBuilder::new(), Float64Builder::new()),
            "double" => Self::Double(Float64Builder::new()),
            "integer" => Self::Integer(Int64Builder::new()),
            "dateTime" => Self::Time(TimestampMicrosecondBuilder::new().with_timezone(UTC)),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn fields(&self, name: &str) -> Vec<Field> {
        let field = |name: &str, of| Field::new(name, of, true);
        match self {
            Self::Decimal(..) => vec![
                field(name, DataType::Utf8),
                field(&format!("{name}{FLOAT}"), DataType::Float64),
            ],
            Self::Double(_) => vec![field(name, DataType::Float64)],
            Self::Integer(_) => vec![field(name, DataType::Int64)],
            Self::Text(_) => vec![field(name, DataType::Utf8)],
            Self::Time(_) => {
                let time = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
                vec![field(name, time)]
            }
        }
    }

    /// Takes what an event says; what it does not say, or says in another form, is null.
    fn put(&mut self, value: Option<&Value>) {
        let value = value.filter(|value| !value.is_null());
        match self {
            Self::Decimal(texts, floats) => {
                let micro = value.and_then(Value::as_i64).and_then(Micro::new);
                texts.append_option(micro.map(|micro| micro.to_string()));
                floats.append_option(micro.map(|micro| micro.value() as f64 / 1e6));
            }
            Self::Double(floats) => floats.append_option(value.and_then(Value::as_f64)),
            Self::Integer(integers) => integers.append_option(value.and_then(Value::as_i64)),
            Self::Text(texts) => texts.append_option(value.map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })),
            Self::Time(times) => times.append_option(value.and_then(Value::as_i64)),
        }
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        match self {
            Self::Decimal(texts, floats) => {
                vec![Arc::new(texts.finish()), Arc::new(floats.finish())]
            }
            Self::Double(floats) => vec![Arc::new(floats.finish())],
            Self::Integer(integers) => vec![Arc::new(integers.finish())],
            Self::Text(texts) => vec![Arc::new(texts.finish())],
            Self::Time(times) => vec![Arc::new(times.finish())],
        }
    }
}

/// A table that is being written.
struct ParquetTable<'t> {
    columns: Vec<Column>,
    held: usize,
    schema: Arc<Schema>,
    table: &'t CsvTable,
    writer: ArrowWriter<Box<dyn Write + Send>>,
}

impl<'t> ParquetTable<'t> {
    fn new(
        table: &'t CsvTable,
        out: Box<dyn Write + Send>,
        origin: &str,
    ) -> Result<Self, ExportError> {
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (name, datatype) in csv::columns(table) {
            let column = Column::new(datatype);
            fields.extend(column.fields(&name));
            columns.push(column);
        }
        let schema = Arc::new(Schema::new(fields));
        let checkpoint = KeyValue::new("clover.checkpoint".to_owned(), origin.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by("clover".to_owned())
            .set_key_value_metadata(Some(vec![checkpoint]))
            .build();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
        Ok(Self {
            columns,
            held: 0,
            schema,
            table,
            writer,
        })
    }

    fn row(&mut self, said: &RecordedEvent, found: &Value) -> Result<(), ExportError> {
        let event = &said.event;
        let experiment = event.experiment().map(ToString::to_string);
        let head = [
            Value::from(said.seq),
            Value::from(said.recorded_at.micros()),
            Value::from(event.kind().as_str()),
            Value::from(experiment),
            Value::from(event.header.author.to_string()),
            Value::from(event.id.to_string()),
        ];
        let mut columns = self.columns.iter_mut();
        // The values come first: a column that was asked for beyond them would be lost.
        for (value, column) in head.iter().zip(columns.by_ref()) {
            column.put(Some(value));
        }
        if self.table.columns.is_empty() {
            columns.for_each(|column| column.put(Some(found)));
        } else {
            for (column, path) in columns.zip(self.table.columns) {
                let said = found.pointer(&format!("/{path}"));
                column.put(said.filter(|_| !withholds(path)));
            }
        }
        self.held += 1;
        if self.held == ROWS {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        if self.held == 0 {
            return Ok(());
        }
        let arrays = self.columns.iter_mut().flat_map(Column::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays);
        let batch = batch.map_err(std::io::Error::other)?;
        self.writer.write(&batch)?;
        self.held = 0;
        Ok(())
    }

    fn close(mut self) -> Result<(), ExportError> {
        self.flush()?;
        self.writer.close()?;
        Ok(())
    }
}
