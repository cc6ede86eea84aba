//! How fast the loader is, as a share of what the disk gives.
//!
//! Disks of virtual machines drift by tens of percent within minutes, so a rate alone says little. Each round reads the
//! same bytes in every way, in an order that turns from round to round, and medians are compared.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::Allocation;
use memmap2::{Advice, Mmap, MmapMut};
use model::{Checkpoint, Config, Layout};

use super::ballast::{Ballast, Lending};
use super::{cache, scaled};
use crate::engine::open_gpus;
use crate::failure::Failure;
use crate::loader::{self, LoadReport, Options, Progress, RawMethod, RawSetting};
use crate::platform::Platform;

/// Bytes of the trial passes that choose which raw settings take part.
const TRIAL_BYTES: u64 = 512 << 20;
/// Raw settings that take part in every round: the best of the trials.
const FINALISTS: usize = 4;
/// Read size of the ways that go through the page cache.
const PLAIN_BLOCK: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The checkpoint.
    pub model: PathBuf,
    /// GPUs to load it to.
    pub devices: usize,
    /// Passes of each way.
    pub rounds: usize,
    /// How the loader loads.
    pub options: Options,
}

/// One way to read the checkpoint, and its passes.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// What it is.
    pub name: String,
    /// Bytes a second, pass by pass.
    pub rates: Vec<f64>,
    /// Most bytes of the files that were in the page cache before a pass.
    pub cached_bytes: u64,
}

impl Way {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Whether every pass found next to nothing of the files in the page cache: less than 16 MiB, as headers are read
    /// through it.
    #[must_use]
    pub fn is_cold(&self) -> bool {
        self.cached_bytes < 16 << 20
    }

    /// Bytes a second, of the pass in the middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(&self.rates)
    }
}

/// The `config.json` of a checkpoint of at least `bytes` bytes with the matrix shapes of the released model.
#[must_use]
pub fn checkpoint_config(bytes: u64) -> String {
    scaled::config_json(bytes)
}

/// What the processor calls itself.
#[must_use]
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.to_owned())
}

/// Cores this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

/// The median of some durations, in seconds.
#[must_use]
pub fn median_seconds(durations: &[Duration]) -> f64 {
    median(&durations.iter().map(Duration::as_secs_f64).collect::<Vec<_>>())
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bytes of weights, which every pass reads.
    pub bytes: u64,
    /// The raw settings of all rounds, best median first.
    pub raw: Vec<Way>,
    /// The loader, to the arenas of the GPUs.
    pub loader: Way,
    /// mmap, and a copy of everything.
    pub mapped: Way,
    /// pread through the page cache.
    pub buffered: Way,
    /// Not a way to read: touching as much fresh memory, which emulated GPUs cannot be faster than.
    pub fresh_memory: Way,
    /// The loader's reader, as it named it.
    pub reader: &'static str,
    /// Processor time of the loader's threads, pass by pass.
    pub cpu: Vec<Duration>,
    /// Wall time of the loader, pass by pass.
    pub elapsed: Vec<Duration>,
    /// Most host memory of a pass besides device memory of the emulated machine.
    pub rss_bytes: u64,
    /// Device memory of the emulated machine that a pass touches.
    pub mock_bytes: u64,
}

impl Outcome {
    fn new(raw: &[RawSetting]) -> Self {
        Self {
            bytes: 0,
            raw: raw.iter().map(|setting| Way::new(setting.to_string())).collect(),
            loader: Way::new("loader"),
            mapped: Way::new("mmap + copy"),
            buffered: Way::new("buffered pread 4096 KiB"),
            fresh_memory: Way::new("touching fresh memory"),
            reader: "",
            cpu: Vec::new(),
            elapsed: Vec::new(),
            rss_bytes: 0,
            mock_bytes: 0,
        }
    }

    /// Median rate of the loader over that of the best raw setting.
    #[must_use]
    pub fn ratio_to_raw(&self) -> f64 {
        self.loader.median() / self.raw[0].median()
    }

    /// Processor time of the loader's threads over wall time, in the median.
    #[must_use]
    pub fn cpu_share(&self) -> f64 {
        let share = |(cpu, wall): (&Duration, &Duration)| cpu.as_secs_f64() / wall.as_secs_f64().max(1e-9);
        median(&self.cpu.iter().zip(&self.elapsed).map(share).collect::<Vec<_>>())
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Every way to read raw that is tried.
fn raw_settings() -> Vec<RawSetting> {
    let methods = [1, 2, 4, 8].map(|depth| RawMethod::IoUring { depth });
    let methods: Vec<_> = [RawMethod::Pread].into_iter().chain(methods).collect();
    let blocks = [1 << 20, 2 << 20, 4 << 20];
    methods.iter().flat_map(|&method| blocks.map(|block| RawSetting { method, block })).collect()
}

/// Measures. `say` is told what goes on.
///
/// # Errors
/// The checkpoint is refused, a way to read fails, or there are too few GPUs.
pub fn run(plan: &Plan, platform: &Platform, progress: &dyn Progress, say: &dyn Fn(&str)) -> Result<Outcome, Failure> {
    let bench = Bench::open(plan, platform, progress)?;
    let mut trials = Vec::new();
    for setting in raw_settings() {
        trials.push((bench.raw(setting, TRIAL_BYTES)?, setting));
    }
    trials.sort_by(|a, b| b.0.total_cmp(&a.0));
    let finalists: Vec<_> = trials.iter().take(FINALISTS).map(|(_, setting)| *setting).collect();
    let mut outcome = Outcome::new(&finalists);
    say("a pass to see what host memory it takes");
    bench.measure_memory(&mut outcome)?;
    say("taking the memory that other passes will use from the host of this machine");
    let ballast = Ballast::new(outcome.bytes).map_err(Failure::run)?;
    for round in 0..plan.rounds {
        say(&format!("round {} of {}", round + 1, plan.rounds));
        // Everybody's place changes from round to round.
        for step in 0..FINALISTS + 4 {
            match (step + round) % (FINALISTS + 4) {
                0 => bench.measure_load(&mut outcome, &ballast)?,
                1 => bench.pass(&mut outcome.buffered, Some(&ballast), |paths| buffered(paths, &ballast))?,
                2 => bench.pass(&mut outcome.mapped, Some(&ballast), |paths| mapped(paths, &ballast))?,
                3 => {
                    let bytes = outcome.bytes;
                    bench.pass(&mut outcome.fresh_memory, Some(&ballast), |_| fresh_memory(bytes, &ballast))?;
                }
                raw => {
                    let setting = finalists[raw - 4];
                    bench.pass(&mut outcome.raw[raw - 4], None, |_| bench.raw(setting, u64::MAX))?;
                }
            }
        }
    }
    outcome.raw.sort_by(|a, b| b.median().total_cmp(&a.median()));
    Ok(outcome)
}

/// One pass of the loader.
struct Loaded {
    report: LoadReport,
    elapsed: Duration,
    /// Device memory of the emulated machine that was touched.
    mock_bytes: u64,
}

/// What all passes need.
struct Bench<'a> {
    plan: &'a Plan,
    platform: &'a Platform,
    progress: &'a dyn Progress,
    config: Config,
    layout: Layout,
    checkpoint: Checkpoint,
    gpus: Vec<Arc<Gpu>>,
}

impl<'a> Bench<'a> {
    fn open(plan: &'a Plan, platform: &'a Platform, progress: &'a dyn Progress) -> Result<Self, Failure> {
        let config = Config::read(&plan.model).map_err(Failure::input)?;
        let layout = Layout::new(&config, plan.devices).map_err(Failure::input)?;
        let checkpoint = Checkpoint::open(&plan.model, &config).map_err(Failure::input)?;
        let gpus = open_gpus(platform, plan.devices)?;
        Ok(Self { plan, platform, progress, config, layout, checkpoint, gpus })
    }

    /// Empties the page cache of the files and reads them in some way, which gives bytes a second.
    fn pass(
        &self,
        way: &mut Way,
        ballast: Option<&Ballast>,
        read: impl FnOnce(&[&Path]) -> Result<f64, Failure>,
    ) -> Result<(), Failure> {
        let paths: Vec<&Path> = self.checkpoint.shards().iter().map(|shard| &*shard.path).collect();
        self.empty_cache(&paths, way)?;
        let rate = match ballast {
            Some(ballast) => ballast.lend(|| read(&paths)).map_err(Failure::run)?,
            None => read(&paths),
        };
        way.rates.push(rate?);
        self.empty_cache(&paths, &mut Way::default())
    }

    fn empty_cache(&self, paths: &[&Path], way: &mut Way) -> Result<(), Failure> {
        if self.progress.is_cancelled() {
            return Err(Failure::Interrupted);
        }
        let drop_one = |path: &&Path| cache::drop_cached(path).and_then(|()| cache::cached_bytes(path));
        let left = paths.iter().map(drop_one).sum::<io::Result<u64>>().map_err(Failure::run)?;
        way.cached_bytes = way.cached_bytes.max(left);
        Ok(())
    }

    fn raw(&self, setting: RawSetting, limit: u64) -> Result<f64, Failure> {
        Ok(loader::read_raw(&self.checkpoint, &self.layout, setting, limit)?.rate())
    }

    /// How fast the loader is.
    fn measure_load(&self, outcome: &mut Outcome, ballast: &Ballast) -> Result<(), Failure> {
        let mut way = std::mem::take(&mut outcome.loader);
        self.pass(&mut way, Some(ballast), |_| {
            let Loaded { report, elapsed, .. } = self.load(&Lending { ballast, progress: self.progress })?;
            outcome.reader = report.reader.name();
            outcome.cpu.push(report.cpu);
            outcome.elapsed.push(elapsed);
            Ok(report.bytes_read as f64 / elapsed.as_secs_f64().max(1e-9))
        })?;
        outcome.loader = way;
        Ok(())
    }

    /// What memory the loader takes, in a pass of its own, as no ballast must be counted.
    fn measure_memory(&self, outcome: &mut Outcome) -> Result<(), Failure> {
        loader::reset_peak_rss().map_err(Failure::run)?;
        let loaded = self.load(self.progress)?;
        let peak = loader::peak_rss_bytes().map_err(Failure::run)?;
        outcome.bytes = loaded.report.weight_bytes;
        outcome.mock_bytes = loaded.mock_bytes;
        outcome.rss_bytes = peak.saturating_sub(outcome.mock_bytes);
        Ok(())
    }

    /// Loads into arenas that nobody has touched. The clock also runs while headers are read and checked.
    fn load(&self, progress: &dyn Progress) -> Result<Loaded, Failure> {
        let arena = Allocation::vram(Bytes::new(self.layout.arena_bytes()), "weights");
        let arenas = self.gpus.iter().map(|gpu| gpu.allocate(&arena)).collect::<Result<Vec<_>, _>>();
        let arenas = arenas.map_err(Failure::run)?;
        let arenas: Vec<_> = arenas.iter().collect();
        let start = Instant::now();
        let checkpoint = Checkpoint::open(&self.plan.model, &self.config).map_err(Failure::input)?;
        let report = loader::load(&checkpoint, &self.layout, &self.gpus, &arenas, &self.plan.options, progress)?;
        let elapsed = start.elapsed();
        Ok(Loaded { report, elapsed, mock_bytes: self.platform.touched_bytes().map_err(Failure::run)? })
    }
}

/// How fast this machine gives memory that was not touched before, in huge pages, to all of its cores: what an emulated
/// GPU can take at best.
fn fresh_memory(bytes: u64, ballast: &Ballast) -> Result<f64, Failure> {
    let parts = cores();
    let part = bytes as usize / parts;
    let maps = (0..parts).map(|_| {
        let map = MmapMut::map_anon(part.max(HUGE_PAGE))?;
        map.advise(Advice::HugePage)?;
        Ok(map)
    });
    let maps = maps.collect::<io::Result<Vec<_>>>().map_err(Failure::run)?;
    timed(|| {
        std::thread::scope(|scope| {
            for mut map in maps {
                scope.spawn(move || {
                    for page in map.chunks_mut(HUGE_PAGE) {
                        page.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
                        ballast.release(page.len() as u64);
                    }
                });
            }
        });
        Ok(bytes)
    })
}

fn mapped(paths: &[&Path], ballast: &Ballast) -> Result<f64, Failure> {
    let mut to = vec![0; PLAIN_BLOCK];
    timed(|| {
        let mut bytes = 0;
        for path in paths {
            let file = File::open(path)?;
            // SAFETY: the file is the measurement's own, or one that its user promises not to change meanwhile.
            let map = unsafe { Mmap::map(&file) }?;
            for part in map.chunks(PLAIN_BLOCK) {
                to[..part.len()].copy_from_slice(part);
                // Nobody reads what was copied, so without this nothing would be.
                black_box(&mut to);
                ballast.release(part.len() as u64);
            }
            bytes += map.len() as u64;
        }
        Ok(bytes)
    })
}

fn buffered(paths: &[&Path], ballast: &Ballast) -> Result<f64, Failure> {
    let mut to = vec![0; PLAIN_BLOCK];
    timed(|| {
        let mut bytes = 0;
        for path in paths {
            let file = File::open(path)?;
            let mut at = 0;
            loop {
                match file.read_at(&mut to, at)? {
                    0 => break,
                    read => {
                        at += read as u64;
                        ballast.release(read as u64);
                    }
                }
            }
            bytes += at;
        }
        Ok(bytes)
    })
}

fn timed(read: impl FnOnce() -> io::Result<u64>) -> Result<f64, Failure> {
    let start = Instant::now();
    let bytes = read().map_err(Failure::run)?;
    Ok(bytes as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_pass_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
