//! When a certificate ends: the one field of it that is not needed to verify it and yet of interest.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Date, Month, PrimitiveDateTime, Time};

use super::{Unusable, unusable};

const VERSION: u8 = 0xa0;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many whole days the first certificate in a file is still good for; none if it has ended.
///
/// # Errors
/// If the file cannot be read, or is not a certificate.
pub fn days_left(path: &Path) -> Result<Option<u64>, Unusable> {
    let left = ends(path)?.duration_since(SystemTime::now()).ok();
    Ok(left.map(|left| left.as_secs() / DAY.as_secs()))
}

/// When the first certificate in a file ends.
///
/// # Errors
/// If the file cannot be read, or is not a certificate.
pub fn ends(path: &Path) -> Result<SystemTime, Unusable> {
    let certificate =
        CertificateDer::from_pem_file(path).map_err(|error| unusable(path, &error))?;
    expires(&certificate).map_err(|error| unusable(path, &error))
}

/// When a certificate ends.
///
/// # Errors
/// If it is not a certificate.
pub fn expires(certificate: &CertificateDer<'_>) -> Result<SystemTime, Unusable> {
    not_after(certificate).ok_or_else(|| Unusable("this is not a certificate".into()))
}

/// Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version, serialNumber, signature, issuer,
/// validity SEQUENCE { notBefore, notAfter }, … } … } (RFC 5280, 4.1).
fn not_after(certificate: &[u8]) -> Option<SystemTime> {
    let (_, outer, _) = element(certificate)?;
    let (_, fields, _) = element(outer)?;
    let (first, _, after) = element(fields)?;
    let mut fields = if first == VERSION { after } else { fields };
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (tag, validity, _) = element(fields)?;
    let (_, _, rest) = element(validity)?;
    let (kind, text, _) = element(rest)?;
    if tag == SEQUENCE { moment(kind, text) } else { None }
}

/// The first element of these bytes: its tag, what is in it, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let len = digits.iter().fold(0_usize, |len, digit| len << 8 | usize::from(*digit));
            (len, rest)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(len)?;
    Some((*tag, content, after))
}

/// A point in time: `YYMMDDhhmmssZ`, or with four digits of the year.
fn moment(kind: u8, text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, text) = match kind {
        UTC_TIME => {
            let year: i32 = text.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..)?)
        }
        GENERALIZED_TIME => (text.get(..4)?.parse().ok()?, text.get(4..)?),
        _ => return None,
    };
    let two = |at: usize| text.get(at..at + 2)?.parse::<u8>().ok();
    let date = Date::from_calendar_date(year, Month::try_from(two(0)?).ok()?, two(2)?).ok()?;
    let time = Time::from_hms(two(4)?, two(6)?, two(8)?).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_read() {
        for (year, expected) in [(2031, 1_925_078_399), (2061, 2_871_849_599)] {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            let date = Date::from_calendar_date(year, Month::January, 1).unwrap();
            params.not_after = date.with_hms(23, 59, 59).unwrap().assume_utc();
            let certificate = params.self_signed(&key).unwrap();
            let end = expires(certificate.der()).unwrap();
            let seconds = end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            assert_eq!(seconds, expected, "{year}");
            for len in 0..80 {
                assert!(expires(&certificate.der()[..len].into()).is_err());
            }
        }
    }
}
