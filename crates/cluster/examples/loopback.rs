//! How fast two nodes talk over loopback: numbers one way, and a ball back and forth.
//!
//! `cargo run --release -p quorate-cluster --example loopback`

#[allow(dead_code)]
#[path = "../tests/net/tally.rs"]
mod tally;

use std::error::Error;
use std::time::Instant;

use quorate_cluster::{Config, Driver, Member};
use quorate_core::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use tally::{Command, Event, Tally};

const NUMBERS: u64 = 2_000_000;
const PER_COMMAND: u64 = 1_000;
const BALLS: u64 = 40_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut one, mut two) = pair().await?;
    numbers(&one, &mut two).await?;
    let per_hop = volley(&mut one, &mut two).await?;
    let raw = ping_pong().await?;
    println!("a hop takes {per_hop:.1} us, over a bare socket {raw:.1} us");
    one.shutdown().await;
    two.shutdown().await;
    Ok(())
}

async fn pair() -> Result<(Driver<Tally>, Driver<Tally>), Box<dyn Error>> {
    let first = TcpListener::bind("127.0.0.1:0").await?;
    let second = TcpListener::bind("127.0.0.1:0").await?;
    let (one, two) = (NodeId::at(0), NodeId::at(1));
    let members = [
        Member { id: one, addr: first.local_addr()? },
        Member { id: two, addr: second.local_addr()? },
    ];
    let scene = tally::scene(2);
    let first = Driver::start(&scene, one, first, &members, Config::default()).await?;
    let second = Driver::start(&scene, two, second, &members, Config::default()).await?;
    Ok((first, second))
}

/// One way, as many as there are.
async fn numbers(one: &Driver<Tally>, two: &mut Driver<Tally>) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let say = async {
        for _ in 0..NUMBERS / PER_COMMAND {
            one.command(Command::Say(PER_COMMAND)).await?;
        }
        Ok::<_, Box<dyn Error>>(())
    };
    let hear = async {
        for number in 0..NUMBERS {
            assert_eq!(two.event().await, Some(Event::Heard(NodeId::at(0), number)));
        }
    };
    let (said, ()) = tokio::join!(say, hear);
    said?;
    let seconds = begun.elapsed().as_secs_f64();
    let (sent, got) = (one.stats(), two.stats());
    println!(
        "{:.0} messages/s one way; {:.1} messages and {:.0} bytes per write; one acknowledgement \
         per {:.0} messages",
        NUMBERS as f64 / seconds,
        sent.frames_out as f64 / sent.writes as f64,
        sent.bytes_out as f64 / sent.writes as f64,
        NUMBERS as f64 / got.acks_out as f64,
    );
    Ok(())
}

/// Back and forth; microseconds per hop.
async fn volley(one: &mut Driver<Tally>, two: &mut Driver<Tally>) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    one.command(Command::Serve(BALLS)).await?;
    // An even number: the last one drops where it is received second.
    assert_eq!(two.event().await, Some(Event::Out));
    Ok(begun.elapsed().as_secs_f64() * 1e6 / (BALLS + 1) as f64)
}

/// The same between two tasks with nothing but a socket; microseconds per hop.
async fn ping_pong() -> Result<f64, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut here = TcpStream::connect(listener.local_addr()?).await?;
    let (mut there, _) = listener.accept().await?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    let echo = tokio::spawn(async move {
        let mut byte = [0; 8];
        while there.read_exact(&mut byte).await.is_ok() {
            if there.write_all(&byte).await.is_err() {
                return;
            }
        }
    });
    let begun = Instant::now();
    // On a task of its own, as everything of a driver is.
    let play = tokio::spawn(async move {
        let mut byte = [0; 8];
        for _ in 0..BALLS / 2 {
            here.write_all(&byte).await?;
            here.read_exact(&mut byte).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    play.await??;
    let per_hop = begun.elapsed().as_secs_f64() * 1e6 / BALLS as f64;
    echo.await?;
    Ok(per_hop)
}
