//! One word there and one back over TCP: what no hand-over between two processes can be faster than.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use quorate_transport::reading;
use serde_json::Value;

use crate::pin::{on_core, pin};
use crate::table::quantile;

/// How long one way takes at the median, in nanoseconds, between two processes on these cores, each of
/// which waits for so many microseconds before it answers.
pub(crate) fn one_way(cores: [usize; 2], rounds: u64, pause: u64) -> Result<f64, String> {
    let said = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(said)?;
    let address = listener.local_addr().map_err(said)?.to_string();
    let mut command = Command::new(std::env::current_exe().map_err(said)?);
    let numbers = [cores[1] as u64, rounds, pause].map(|number| number.to_string());
    command.args(["pong", &address]).args(numbers).stdout(Stdio::piped());
    let child = command.spawn().map_err(said)?;
    let mut times = on_core(cores[0], move || {
        let (mut stream, _) = listener.accept().map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        stream.write_all(&reading().0.to_le_bytes()).map_err(said)?;
        answer(&mut stream, rounds, pause).map_err(said)
    })?;
    let output = child.wait_with_output().map_err(said)?;
    let theirs: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    times.extend(theirs.as_array().into_iter().flatten().filter_map(Value::as_f64));
    Ok(quantile(&mut times, 0.5))
}

/// The other process: prints how long each word took to it.
pub(crate) fn pong(
    address: SocketAddr,
    core: usize,
    rounds: u64,
    pause: u64,
) -> Result<(), String> {
    pin(core)?;
    let said = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(said)?;
    stream.set_nodelay(true).map_err(said)?;
    let times = answer(&mut stream, rounds, pause).map_err(said)?;
    println!("{}", serde_json::json!(times));
    Ok(())
}

fn answer(stream: &mut TcpStream, rounds: u64, pause: u64) -> std::io::Result<Vec<f64>> {
    let (mut times, mut word) = (Vec::new(), [0; 8]);
    for _ in 0..rounds {
        // The other one may have said its last word.
        if stream.read_exact(&mut word).is_err() {
            break;
        }
        let (now, _) = reading();
        times.push(now.saturating_sub(u64::from_le_bytes(word)) as f64);
        std::thread::sleep(Duration::from_micros(pause));
        if stream.write_all(&reading().0.to_le_bytes()).is_err() {
            break;
        }
    }
    Ok(times)
}
