//! What a page is answered: a JSON value, and columns of numbers behind it.

use serde_json::{Map, Value, json};

/// An answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// What is said in words.
    pub json: Map<String, Value>,
    /// Where the columns are: by name, the type of their numbers, the place of the first one, and how
    /// many there are.
    columns: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Answer {
    /// An answer without columns.
    #[must_use]
    pub fn new(json: Map<String, Value>) -> Self {
        Self { json, ..Self::default() }
    }

    /// Adds a value.
    pub fn say(&mut self, name: &str, value: impl Into<Value>) {
        self.json.insert(name.to_owned(), value.into());
    }

    /// A column of real numbers.
    pub fn reals(&mut self, name: &str, numbers: impl Iterator<Item = f64>) {
        self.column(name, "f64", numbers.map(f64::to_le_bytes));
    }

    /// A column of whole numbers.
    pub fn wholes(&mut self, name: &str, numbers: impl Iterator<Item = i32>) {
        self.column(name, "i32", numbers.map(i32::to_le_bytes));
    }

    /// A column of small numbers.
    pub fn smalls(&mut self, name: &str, numbers: impl Iterator<Item = u8>) {
        self.column(name, "u8", numbers.map(|number| [number]));
    }

    fn column<const N: usize>(
        &mut self,
        name: &str,
        kind: &str,
        numbers: impl Iterator<Item = [u8; N]>,
    ) {
        self.pad();
        let first = self.bytes.len();
        let mut count = 0;
        for number in numbers {
            self.bytes.extend(number);
            count += 1;
        }
        self.columns.insert(name.to_owned(), json!([kind, first, count]));
    }

    /// Whatever comes next begins where eight bytes can be read at once.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// The answer as bytes: the length of the text, the text, and the columns, each part from a
    /// multiple of eight on.
    #[must_use]
    pub fn bytes(mut self) -> Vec<u8> {
        if !self.columns.is_empty() {
            let columns = std::mem::take(&mut self.columns);
            self.json.insert("columns".into(), Value::Object(columns));
        }
        let text = serde_json::to_vec(&self.json).unwrap_or_default();
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(self.bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_begin_at_multiples_of_eight() {
        let mut answer = Answer::default();
        answer.smalls("small", [1, 2, 3].into_iter());
        answer.reals("real", [0.5].into_iter());
        answer.wholes("whole", [-1].into_iter());
        answer.say("name", "x");
        let bytes = answer.bytes();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let json: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        assert_eq!(json["columns"]["real"], json!(["f64", 8, 1]));
        let data = &bytes[(8 + length).next_multiple_of(8)..];
        assert_eq!(&data[..3], [1, 2, 3]);
        assert_eq!(&data[8..16], 0.5f64.to_le_bytes());
        assert_eq!(&data[16..20], (-1i32).to_le_bytes());
    }
}
