//! Packets: where they go, and how a firewall refuses them.

use std::net::Ipv4Addr;

const TCP: u8 = 6;
const HEADER: usize = 20;

/// From and to where a packet of IPv4 goes; nothing if it is none.
pub(super) fn ends(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    header(packet).map(|_| (address(packet, 12), address(packet, 16)))
}

/// How long the header is, if this is a packet of IPv4.
fn header(packet: &[u8]) -> Option<usize> {
    let first = packet.first().filter(|first| **first >> 4 == 4)?;
    let length = usize::from(first & 15) * 4;
    (length >= HEADER && packet.len() >= length).then_some(length)
}

fn address(packet: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3])
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// What a firewall answers that rejects this packet in the name of its receiver: a reset, as RFC 9293,
/// 3.10.7.1 has it for a port that nobody listens at. Nothing is answered to a reset, nor to what is not
/// TCP.
pub(super) fn reset_for(packet: &[u8]) -> Option<Vec<u8>> {
    let start = header(packet)?;
    let segment = packet.get(start..).filter(|segment| segment.len() >= HEADER)?;
    let flags = segment[13];
    if packet[9] != TCP || flags & RST != 0 {
        return None;
    }
    let (sequence, flags) = if flags & ACK != 0 {
        (number(segment, 8), (0, RST))
    } else {
        let data = segment.len().saturating_sub(usize::from(segment[12] >> 4) * 4);
        let marks = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let length = u32::try_from(data).unwrap_or(0) + marks;
        (0, (number(segment, 4).wrapping_add(length), RST | ACK))
    };
    let mut answer = vec![0; 2 * HEADER];
    answer[0] = 0x45;
    answer[2..4].copy_from_slice(&40_u16.to_be_bytes());
    (answer[8], answer[9]) = (64, TCP);
    answer[12..16].copy_from_slice(&packet[16..20]);
    answer[16..20].copy_from_slice(&packet[12..16]);
    let sum = checksum(&answer[..HEADER], 0);
    answer[10..12].copy_from_slice(&sum.to_be_bytes());
    let (acknowledged, flags) = flags;
    answer[20..22].copy_from_slice(&segment[2..4]);
    answer[22..24].copy_from_slice(&segment[..2]);
    answer[24..28].copy_from_slice(&sequence.to_be_bytes());
    answer[28..32].copy_from_slice(&acknowledged.to_be_bytes());
    (answer[32], answer[33]) = (5 << 4, flags);
    // What comes before the segment in its sum: both addresses, the protocol and the length.
    let before = sum_of(&answer[12..20]) + u32::from(TCP) + HEADER as u32;
    let sum = checksum(&answer[HEADER..], before);
    answer[36..38].copy_from_slice(&sum.to_be_bytes());
    Some(answer)
}

fn sum_of(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks(2);
    pairs.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

/// The sum of RFC 1071 over these bytes and what came before.
fn checksum(bytes: &[u8], before: u32) -> u16 {
    let mut sum = sum_of(bytes) + before;
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment from port 5 of 10.0.0.1 to port 7 of 10.0.0.2.
    fn segment(flags: u8, data: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 2 * HEADER];
        (packet[0], packet[9]) = (0x45, TCP);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..24].copy_from_slice(&[0, 5, 0, 7]);
        packet[24..28].copy_from_slice(&1000_u32.to_be_bytes());
        packet[28..32].copy_from_slice(&2000_u32.to_be_bytes());
        (packet[32], packet[33]) = (5 << 4, flags);
        packet.extend(data);
        packet
    }

    #[test]
    fn a_packet_says_where_it_goes_and_nonsense_does_not() {
        let (from, to) = ends(&segment(SYN, &[])).unwrap();
        assert_eq!((from.octets(), to.octets()), ([10, 0, 0, 1], [10, 0, 0, 2]));
        assert_eq!(ends(&[]), None);
        assert_eq!(ends(&[0x60; 40]), None);
        assert_eq!(ends(&[0x4f; 40]), None, "its header is longer than it is");
    }

    #[test]
    fn a_beginning_is_refused_and_a_connection_is_reset() {
        let refused = reset_for(&segment(SYN, &[])).unwrap();
        assert_eq!(ends(&refused).map(|(from, _)| from.octets()), Some([10, 0, 0, 2]));
        assert_eq!(refused[20..24], [0, 7, 0, 5]);
        assert_eq!((number(&refused, 24), number(&refused, 28)), (0, 1001));
        assert_eq!(refused[33], RST | ACK);
        let reset = reset_for(&segment(ACK, &[1, 2, 3])).unwrap();
        assert_eq!((number(&reset, 24), reset[33]), (2000, RST));
    }

    #[test]
    fn sums_are_right() {
        for packet in [segment(SYN, &[]), segment(ACK, &[9; 9])] {
            let answer = reset_for(&packet).unwrap();
            assert_eq!(checksum(&answer[..HEADER], 0), 0);
            let before = sum_of(&answer[12..20]) + u32::from(TCP) + HEADER as u32;
            assert_eq!(checksum(&answer[HEADER..], before), 0);
        }
        // The example of RFC 1071, 3.
        assert_eq!(!checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), 0xddf2);
    }

    #[test]
    fn nothing_is_answered_to_a_reset_or_to_other_protocols() {
        assert_eq!(reset_for(&segment(RST, &[])), None);
        let mut other = segment(SYN, &[]);
        other[9] = 17;
        assert_eq!(reset_for(&other), None);
        assert_eq!(reset_for(&segment(SYN, &[])[..30]), None);
    }
}
