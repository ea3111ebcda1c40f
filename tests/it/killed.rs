//! The real program, ended in the middle of its work: by SIGKILL, by Ctrl-C, by a SAS that expires. Run again it sends the rest.
//!
//! When it ends is decided by bytes that have passed: between program and service stands a relay that counts them, and acts
//! when so many are through. The amounts come from a seed, printed with what they led to.

use crate::cli_support::{Ran, World};
use crate::double::pattern;
use crate::world::client;
use blobjet::emulator::{Emulator, Seen};
use blobjet::rest::auth::{Inputs, Need};
use blobjet::rest::blob::{Blob, DeleteSnapshots};
use blobjet::rest::client::{Client, Op};
use blobjet::rest::request::Request;
use blobjet::secret::Secret;
use http::Method;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to the program once enough bytes are through.
type Act = Box<dyn FnOnce(&mut Child) + Send>;

#[derive(Default)]
struct State {
    /// Bytes that have passed from the program to the service.
    passed: AtomicU64,
    /// What is to happen, and after how many bytes.
    plan: Mutex<Option<(u64, Act)>>,
    child: Mutex<Option<Child>>,
    /// Nothing passes until the program has said that it stops, or has ended.
    held: watch::Sender<bool>,
}

/// Stands between the program and the service.
struct Relay {
    port: u16,
    state: Arc<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl Relay {
    async fn to(emulator: &Emulator) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, target) = (listener.local_addr().unwrap().port(), emulator.port());
        let state: Arc<State> = Arc::default();
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(relay(near, target, Arc::clone(&shared)));
            }
        });
        Relay { port, state }
    }

    /// The emulator's address with the relay's port.
    fn url(&self, emulator: &Emulator) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, emulator.account())
    }

    fn passed(&self) -> u64 {
        self.state.passed.load(Ordering::SeqCst)
    }

    /// Runs the program, and does `act` to it when `after` more bytes have passed. Says whether that came about.
    async fn run(&self, world: &World, args: &[&str], after: u64, act: Act) -> (Ran, bool) {
        *lock(&self.state.plan) = Some((self.passed() + after, act));
        let (stdout, stderr) = {
            // Held until it is in its place: the relay acts on what is there.
            let mut place = lock(&self.state.child);
            let mut child = world.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
            *place = Some(child);
            pipes
        };
        let read = |pipe: Box<dyn std::io::Read + Send>| {
            let (mut pipe, state) = (BufReader::new(pipe), Arc::clone(&self.state));
            tokio::task::spawn_blocking(move || {
                let mut text = String::new();
                while pipe.read_line(&mut text).unwrap() > 0 {
                    if text.contains("stopping: ") {
                        state.held.send_replace(false);
                    }
                }
                state.held.send_replace(false);
                text
            })
        };
        let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
        let (stdout, stderr) = (stdout.await.unwrap(), stderr.await.unwrap());
        let status = lock(&self.state.child).take().unwrap().wait().unwrap();
        let acted = lock(&self.state.plan).take().is_none();
        (Ran { code: status.code().unwrap_or(-1), stdout, stderr }, acted)
    }

    /// Runs it to its end.
    async fn finish(&self, world: &World, args: &[&str]) -> Ran {
        self.run(world, args, u64::MAX / 2, Box::new(|_| ())).await.0
    }
}

async fn relay(mut near: TcpStream, target: u16, state: Arc<State>) {
    let Ok(mut far) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    let (mut from_near, mut to_near) = near.split();
    let (mut from_far, mut to_far) = far.split();
    let there = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from_near.read(&mut buffer).await {
            let passed = state.passed.fetch_add(count as u64, Ordering::SeqCst) + count as u64;
            let due = lock(&state.plan).take_if(|(after, _)| passed >= *after);
            if let Some((_, act)) = due {
                act(lock(&state.child).as_mut().unwrap());
            }
            state.held.subscribe().wait_for(|held| !held).await.unwrap();
            if to_far.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
        let _ = to_far.shutdown().await;
    };
    let back = async {
        let _ = tokio::io::copy(&mut from_far, &mut to_near).await;
        let _ = to_near.shutdown().await;
    };
    tokio::join!(there, back);
}

fn kill() -> Act {
    // SIGKILL on Unix: no destructor, no handler, no flush.
    Box::new(|child| child.kill().unwrap())
}

/// Pseudo-random numbers (Knuth's MMIX generator), the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

struct Place {
    world: World,
    emulator: Emulator,
    relay: Relay,
    client: Client,
    /// The container, through the relay.
    url: String,
}

impl Place {
    async fn new(emulator: Emulator) -> Place {
        let mut world = World::new();
        world.know(&emulator);
        let relay = Relay::to(&emulator).await;
        let inputs = Inputs { connection_string: Some(Secret::new(emulator.connection_string())), ..Inputs::default() };
        let client = client(&emulator.url(), &inputs);
        let url = format!("{}/box", relay.url(&emulator));
        assert_eq!(relay.finish(&world, &["make", &url]).await.code, 0);
        Place { world, emulator, relay, client, url }
    }

    async fn started() -> Place {
        Place::new(Emulator::builder().record(true).start().await.unwrap()).await
    }

    async fn get(&self, name: &str) -> Vec<u8> {
        let path = self.client.location().blob_path("box", name);
        let response = self.client.send(Request::new(Method::GET, path), Op::new("get", Need::READ)).await;
        response.unwrap().body.to_vec()
    }

    async fn is_there(&self, name: &str) -> bool {
        Blob::new(&self.client, "box", name).get_properties().await.unwrap().is_some()
    }

    /// Bytes of blocks acknowledged for this name.
    fn staged(&self, name: &str) -> u64 {
        let path = format!("/box/{name}");
        let blocks = |seen: &&Seen| seen.status == 201 && seen.path.ends_with(&path) && seen.query.contains("comp=block&");
        self.emulator.seen().iter().filter(blocks).map(|seen| seen.body_len).sum()
    }
}

const LANES: u64 = 4;
/// 1/64 MiB, as the flag takes it.
const BLOCK: u64 = 16_384;
const LARGE: u64 = 60 * BLOCK + 77;

fn copy<'a>(from: &'a str, to: &'a str) -> Vec<&'a str> {
    vec!["copy", from, to, "--block-size-mb=0.015625", "--concurrency=4", "--output-type=json"]
}

/// Case 27, promised as semantics 45.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_killed_at_a_hundred_moments_is_finished_by_the_rest() {
    let seed = 20_261_130;
    let (mut dice, place) = (Dice(seed), Place::started().await);
    let data = pattern(usize::try_from(LARGE).unwrap());
    place.world.write("f.bin", &data);
    let (mut kills, mut blobs, mut again, mut worst) = (0, 0, 0, 0);
    while kills < 100 {
        let name = format!("f{blobs}");
        let to = format!("{}/{name}", place.url);
        let (mut here, before) = (0, place.relay.passed());
        // Some are killed once, some over and over until nothing is left to do.
        for _ in 0..=dice.below(6) {
            let left = LARGE - place.staged(&name).min(LARGE);
            let (ran, killed) = place.relay.run(&place.world, &copy("f.bin", &to), dice.below(left + 2 * BLOCK), kill()).await;
            match killed {
                true => here += 1,
                false => assert_eq!(ran.code, 0, "seed {seed}, {name}: {ran:?}"),
            }
            if place.is_there(&name).await {
                break;
            }
        }
        if !place.is_there(&name).await {
            let ran = place.relay.finish(&place.world, &copy("f.bin", &to)).await;
            assert_eq!(ran.code, 0, "seed {seed}, {name}: {ran:?}");
            let summary = ran.json().pop().unwrap();
            assert_eq!((&summary["done"], &summary["bytes_done"]), (&1.into(), &LARGE.into()));
        }
        assert!(place.get(&name).await == data, "seed {seed}, {name}");
        let (sent_again, on_wire) = (place.staged(&name) - LARGE, place.relay.passed() - before);
        let in_flight = here * LANES * BLOCK;
        assert!(sent_again <= in_flight + LARGE / 100, "seed {seed}, {name}: {sent_again} bytes after {here} kills");
        // On the wire there are heads and lists besides: 1 KiB a block will do for both.
        let allowed = LARGE + in_flight + LARGE / 100 + (here + 1) * (LARGE / BLOCK + 4) * 1024;
        assert!(on_wire <= allowed, "seed {seed}, {name}: {on_wire} bytes on the wire after {here} kills");
        assert!(Blob::new(&place.client, "box", &name).delete(DeleteSnapshots::Refuse).await.unwrap());
        (kills, blobs, again, worst) = (kills + here, blobs + 1, again + sent_again, worst.max(sent_again));
    }
    crate::tell(&format!(
        "seed {seed}: {kills} kills in {blobs} uploads of {LARGE} bytes; {again} bytes of blocks sent again in all, {worst} at most"
    ));
}

/// Case 27.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_files_killed_again_and_again_all_arrive() {
    let seed = 5;
    let (mut dice, place) = (Dice(seed), Place::started().await);
    let names: Vec<String> = (0..2000).map(|i| format!("d/{:02}/{i}.txt", i % 40)).collect();
    names.iter().for_each(|name| drop(place.world.write(name, name)));
    let args = ["copy", "d", &place.url, "--recursive", "--overwrite=false", "--output-type=json"];
    // About 700 bytes a request.
    let mut kills = 0;
    for _ in 0..6 {
        kills += u64::from(place.relay.run(&place.world, &args, dice.below(1_200_000), kill()).await.1);
    }
    let ran = place.relay.finish(&place.world, &args).await;
    assert_eq!(ran.code, 0, "seed {seed}: {ran:?}");
    let summary = ran.json().pop().unwrap();
    assert_eq!(summary["done"].as_u64().unwrap() + summary["skipped"].as_u64().unwrap(), 2000);
    for name in &names {
        assert_eq!(place.get(name).await, name.as_bytes(), "seed {seed}");
    }
    let stored = place.emulator.seen().iter().filter(|seen| seen.method == "PUT" && seen.status == 201).count();
    assert_eq!(stored, 2000 + 1, "each once, and the container");
    crate::tell(&format!("seed {seed}: {kills} kills in one upload of 2000 files, each stored once"));
}

/// Promised as semantics 23, 41.
#[tokio::test(flavor = "multi_thread")]
async fn after_ctrl_c_the_same_command_sends_the_rest() {
    let place = Place::started().await;
    let data = pattern(usize::try_from(LARGE).unwrap());
    place.world.write("f.bin", &data);
    let to = format!("{}/f", place.url);
    let state = Arc::clone(&place.relay.state);
    let interrupt: Act = Box::new(move |child| {
        state.held.send_replace(true);
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    });
    let (ran, interrupted) = place.relay.run(&place.world, &copy("f.bin", &to), LARGE / 2, interrupt).await;
    assert!(interrupted);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.stdout.contains("are kept for a week and not sent again; to go on: "), "{ran:?}");
    assert!(!place.is_there("f").await);
    let kept = place.staged("f");
    let ran = place.relay.finish(&place.world, &copy("f.bin", &to)).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let summary = ran.json().pop().unwrap();
    assert_eq!((&summary["bytes_resumed"], &summary["bytes_done"]), (&kept.into(), &LARGE.into()));
    assert_eq!(place.staged("f"), LARGE, "no block twice: those in flight had their answers");
    assert!(place.get("f").await == data);
}

/// Case 29, promised as semantics 46.
#[tokio::test(flavor = "multi_thread")]
async fn a_sas_that_expires_under_way_ends_the_job_and_another_goes_on() {
    let late = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&late);
    let clock = Arc::new(move || SystemTime::now() + Duration::from_secs(clock.load(Ordering::SeqCst)));
    let place = Place::new(Emulator::builder().record(true).clock(clock).start().await.unwrap()).await;
    let data = pattern(usize::try_from(LARGE).unwrap());
    place.world.write("f.bin", &data);
    let sas = |url: &str, rights: &str, expiry: &str| {
        let ran = place.world.run(&["sas", url, "--permissions", rights, "--expiry", expiry]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    // Another machine: it has nothing but the URL.
    let nobody = World::new();
    nobody.write("f.bin", &data);
    // Good for five minutes, of which ten pass in the middle: not so many that the clocks were to blame.
    let first = sas(&format!("{}/f", place.url), "rcw", "5m");
    let expire: Act = Box::new(move |_| late.store(600, Ordering::SeqCst));
    let (ran, expired) = place.relay.run(&nobody, &copy("f.bin", &first), LARGE / 2, expire).await;
    assert!(expired);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stdout.contains("Signed expiry time") && ran.stdout.contains("the SAS has expired"), "{ran:?}");
    assert_eq!(ran.stdout.matches("\"type\":\"error\"").count(), 1, "told once: {ran:?}");
    let refused = place.emulator.seen().iter().filter(|seen| seen.status == 403).count() as u64;
    assert!((1..=LANES).contains(&refused), "{refused} requests were refused");
    let kept = place.staged("f");
    assert!(kept > 0 && !place.is_there("f").await);
    // For the container and not for the blob, with other rights, another expiry and thus another signature.
    let second = sas(&place.url, "racwdl", "10h").replacen("/box?", "/box/f?", 1);
    let ran = place.relay.finish(&nobody, &copy("f.bin", &second)).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json().pop().unwrap()["bytes_resumed"], kept);
    assert_eq!(place.staged("f"), LARGE);
    assert!(place.get("f").await == data);
}
