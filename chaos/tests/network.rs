//! Sockets in namespaces of their own, with the switch between them.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use quorate_chaos::network::{Port, Quality, Switch};
use quorate_chaos::setting::missing;

const MILLISECOND: Duration = Duration::from_millis(1);
/// Long enough for anything that comes at all, however busy the machine is.
const LONG: Duration = Duration::from_secs(30);

/// Two ports and what is between them; nothing if this machine does not allow that.
fn two() -> Option<([Port; 2], Switch)> {
    if let Some(reason) = missing() {
        eprintln!("skipped: {reason}");
        return None;
    }
    let ports = [Port::open(1).unwrap(), Port::open(2).unwrap()];
    let switch = Switch::connect(&ports, 1).unwrap();
    Some((ports, switch))
}

/// Somebody who says everything again that is said to it.
fn echo(port: &Port) -> SocketAddr {
    let place = SocketAddr::from((port.address(), 7000));
    let listener = port.within(move || TcpListener::bind(place)).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut reader, mut writer) = (stream.try_clone().unwrap(), stream);
                _ = std::io::copy(&mut reader, &mut writer);
            });
        }
    });
    place
}

fn connect(port: &Port, place: SocketAddr, patience: Duration) -> std::io::Result<TcpStream> {
    let stream = port.within(move || TcpStream::connect_timeout(&place, patience))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LONG))?;
    Ok(stream)
}

/// Says something and hears it again.
fn talk(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<()> {
    let mut heard = vec![0; text.len()];
    stream.write_all(text)?;
    stream.read_exact(&mut heard)?;
    assert_eq!(heard, text);
    Ok(())
}

#[test]
fn two_talk_and_what_is_delayed_takes_longer() {
    let Some(([one, two], switch)) = two() else { return };
    let mut stream = connect(&one, echo(&two), LONG).unwrap();
    talk(&mut stream, b"hello").unwrap();
    let delay = 40 * MILLISECOND;
    switch.set_all(Quality { delay, ..Quality::default() });
    let begun = Instant::now();
    talk(&mut stream, b"hello").unwrap();
    assert!(begun.elapsed() >= 2 * delay, "there and back again");
    switch.set_all(Quality::default());
    switch.change(two.address(), one.address(), |back| back.delay = 90 * MILLISECOND);
    let begun = Instant::now();
    talk(&mut stream, b"hello").unwrap();
    assert!(begun.elapsed() >= 90 * MILLISECOND, "one way alone");
}

#[test]
fn what_is_cut_hears_nothing_and_goes_on_when_it_is_healed() {
    let Some(([one, two], switch)) = two() else { return };
    let place = echo(&two);
    let mut stream = connect(&one, place, LONG).unwrap();
    talk(&mut stream, b"hello").unwrap();
    switch.change(two.address(), one.address(), |back| back.cut = true);
    let refused = connect(&one, place, 300 * MILLISECOND).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut, "one way is not enough");
    stream.set_read_timeout(Some(300 * MILLISECOND)).unwrap();
    let silent = talk(&mut stream, b"again").unwrap_err();
    assert!(matches!(silent.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silent}");
    switch.set_all(Quality::default());
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"again", "what was said meanwhile is heard");
}

#[test]
fn a_bad_network_loses_nothing_that_tcp_carries() {
    let Some(([one, two], switch)) = two() else { return };
    let jitter = 2 * MILLISECOND;
    let bad = Quality { loss: 200_000, duplicate: 50_000, reorder: 50_000, ..Quality::default() };
    switch.set_all(Quality { jitter, ..bad });
    let mut stream = connect(&one, echo(&two), LONG).unwrap();
    let text: Vec<u8> = (0..40_000_u32).map(|number| number as u8).collect();
    talk(&mut stream, &text).unwrap();
}

#[test]
fn kernels_refuse_where_nobody_listens_and_reset_what_is_closed() {
    let Some(([one, two], _switch)) = two() else { return };
    let place = SocketAddr::from((two.address(), 7001));
    let refused = connect(&one, place, LONG).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let listener = two.within(move || TcpListener::bind(place)).unwrap();
    let mut stream = connect(&one, place, LONG).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    stream.write_all(b"unread").unwrap();
    accepted.peek(&mut [0]).unwrap();
    drop((accepted, listener));
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// As kube-proxy and firewalls do it: the listener is there, and does not know.
#[test]
fn who_is_rejected_is_refused_and_reset_though_it_is_there() {
    let Some(([one, two], switch)) = two() else { return };
    let place = echo(&two);
    let mut stream = connect(&one, place, LONG).unwrap();
    talk(&mut stream, b"hello").unwrap();
    switch.reject(two.address(), true);
    let refused = connect(&one, place, LONG).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let reset = talk(&mut stream, b"hello").unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    switch.reject(two.address(), false);
    talk(&mut connect(&one, place, LONG).unwrap(), b"hello").unwrap();
}

#[test]
fn a_process_that_is_started_inside_sees_one_device() {
    let Some(([one, _], _switch)) = two() else { return };
    let mut command = std::process::Command::new("cat");
    command.arg("/proc/self/net/dev").stdout(std::process::Stdio::piped());
    let output = one.spawn(command).unwrap().wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let devices = text.lines().skip(2).filter_map(|line| line.split(':').next());
    let mut devices: Vec<_> = devices.map(str::trim).collect();
    devices.sort_unstable();
    assert_eq!(devices, ["lo", "q0"]);
}
