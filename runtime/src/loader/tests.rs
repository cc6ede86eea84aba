//! The whole loader against emulated GPUs: whatever lies in the files, however reads come back, every byte of every arena
//! is what a plain read of the files says.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::cell::Cell;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::{Allocation, Buffer};
use model::layout::WeightCopy;
use proptest::prelude::*;
use tempfile::TempDir;

use super::file::ShardFile;
use super::pipeline::{Parts, Pipeline, Stopped};
use super::plan::{PlannedFile, Weights};
use super::reader::{Completion, Read, Reader, ReaderKind, Threads};
use super::staging::Staging;
use super::{LoadError, LoadReport, Options, Progress, ReaderChoice, Silent, Target, run, streams};
use crate::engine::{Transfers, open_gpus};
use crate::platform::Platform;

/// How a tensor is spread over the ranks.
#[derive(Clone, Copy, Debug)]
enum Axis {
    Replicated,
    Rows,
    Columns,
}

/// A tensor of `rows` x `ranks` rows of `row` x `ranks` x `element` bytes, `gap` bytes behind the one before.
#[derive(Clone, Copy, Debug)]
struct Shape {
    gap: u64,
    rows: u64,
    row: u64,
    element: u64,
    axis: Axis,
}

fn shape() -> impl Strategy<Value = Shape> {
    let axis = prop::sample::select(vec![Axis::Replicated, Axis::Rows, Axis::Columns]);
    let element = prop::sample::select(vec![1u64, 2, 4]);
    let rows = prop_oneof![4 => 1u64..40, 1 => Just(0), 1 => 200u64..900];
    let row = prop_oneof![4 => 1u64..50, 1 => Just(0), 1 => 300u64..2500];
    let gap = prop_oneof![6 => Just(0u64), 1 => 1u64..5000];
    (gap, rows, row, element, axis).prop_map(|(gap, rows, row, element, axis)| Shape { gap, rows, row, element, axis })
}

/// Files of random bytes with tensors of the given shapes.
struct Fixture {
    folder: TempDir,
    files: Vec<PlannedFile>,
    copies: Vec<Vec<Vec<WeightCopy>>>,
    ranks: usize,
    arena_bytes: u64,
}

impl Fixture {
    fn new(shapes: &[Vec<Shape>], start: u64, tail: u64, ranks: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut fixture = Self { folder, files: Vec::new(), copies: Vec::new(), ranks, arena_bytes: 0 };
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        for (number, shapes) in shapes.iter().enumerate() {
            let (mut at, mut pieces, mut copies) = (start, Vec::new(), Vec::new());
            for shape in shapes {
                at += shape.gap;
                let (piece, piece_copies) = fixture.place(shape, at);
                at = piece.end;
                pieces.push(piece);
                copies.push(piece_copies);
            }
            let bytes: Vec<u8> = (0..at + tail)
                .map(|_| {
                    noise ^= noise << 13;
                    noise ^= noise >> 7;
                    noise ^= noise << 17;
                    noise as u8
                })
                .collect();
            let path = fixture.folder.path().join(format!("{number}.safetensors"));
            fs::write(&path, &bytes).unwrap();
            fixture.files.push(PlannedFile::new(path, bytes.len() as u64, pieces));
            fixture.copies.push(copies);
        }
        fixture
    }

    /// Gives a tensor its place in the arenas, as the model's layout would.
    fn place(&mut self, shape: &Shape, begin: u64) -> (Range<u64>, Vec<WeightCopy>) {
        let ranks = self.ranks as u64;
        let (row_parts, column_parts) = match shape.axis {
            Axis::Replicated => (1, 1),
            Axis::Rows => (ranks, 1),
            Axis::Columns => (1, ranks),
        };
        let row_bytes = shape.row * shape.element;
        let pitch = if column_parts > 1 { row_bytes.next_multiple_of(4) } else { row_bytes };
        let destination = self.arena_bytes;
        self.arena_bytes = (destination + shape.rows * pitch).next_multiple_of(256);
        let full_row = row_bytes * column_parts;
        let copies = (0..ranks).filter(|_| shape.rows * row_bytes > 0).map(|rank| WeightCopy {
            rank: rank as usize,
            source: begin
                + match shape.axis {
                    Axis::Replicated => 0,
                    Axis::Rows => rank * shape.rows * full_row,
                    Axis::Columns => rank * row_bytes,
                },
            source_pitch: full_row,
            destination,
            destination_pitch: pitch,
            rows: shape.rows,
            row_bytes,
        });
        (begin..begin + shape.rows * row_parts * full_row, copies.collect())
    }

    /// What the arenas must hold, by plain reads of the files.
    fn expected(&self) -> Vec<Vec<u8>> {
        let mut arenas = vec![vec![0; self.arena_bytes as usize]; self.ranks];
        for (file, copies) in self.files.iter().zip(&self.copies) {
            let bytes = fs::read(&file.path).unwrap();
            for copy in copies.iter().flatten() {
                for row in 0..copy.rows {
                    let from = (copy.source + row * copy.source_pitch) as usize;
                    let to = (copy.destination + row * copy.destination_pitch) as usize;
                    let row_bytes = copy.row_bytes as usize;
                    arenas[copy.rank][to..to + row_bytes].copy_from_slice(&bytes[from..from + row_bytes]);
                }
            }
        }
        arenas
    }
}

impl Weights for Fixture {
    fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    fn copies(&self, file: usize, piece: usize, window: &Range<u64>, out: &mut Vec<WeightCopy>) {
        out.extend(self.copies[file][piece].iter().flat_map(|copy| copy.within(window.clone())));
    }

    fn name(&self, file: usize, piece: usize) -> String {
        format!("tensor {piece} of {file}")
    }

    fn layer(&self, _: usize, _: usize) -> Option<u16> {
        None
    }
}

/// An emulated machine, and one arena a GPU.
struct Machine {
    platform: Platform,
    gpus: Vec<Arc<Gpu>>,
}

impl Machine {
    fn new(gpus: usize) -> Self {
        let platform = Platform::open_mock(mock::Config { gpus, ..mock::Config::default() }).unwrap();
        let gpus = open_gpus(&platform, gpus).unwrap();
        Self { platform, gpus }
    }

    fn arenas(&self, bytes: u64) -> Vec<Buffer> {
        let arena = Allocation::vram(Bytes::new(bytes.max(1)), "arena");
        self.gpus.iter().map(|gpu| gpu.allocate(&arena).unwrap()).collect()
    }

    fn read_back(&self, arenas: &[Buffer], bytes: u64) -> Vec<Vec<u8>> {
        let read = |(gpu, arena): (&Arc<Gpu>, &Buffer)| {
            let mut content = vec![0; bytes as usize];
            Transfers::new(gpu).unwrap().read(arena.va(), &mut content).unwrap();
            content
        };
        let content = self.gpus.iter().zip(arenas).map(read).collect();
        assert_eq!(self.platform.mock.as_ref().unwrap().faults(), Vec::<String>::new());
        content
    }

    fn load(&self, fixture: &Fixture, options: &Options) -> (Result<LoadReport, LoadError>, Vec<Vec<u8>>) {
        let arenas = self.arenas(fixture.arena_bytes);
        let references: Vec<_> = arenas.iter().collect();
        let target = Target::Arenas { gpus: &self.gpus, arenas: &references };
        let report = run(fixture, target, options, &Silent, Instant::now());
        (report, self.read_back(&arenas, fixture.arena_bytes))
    }
}

fn options(block_pages: u64, depth: usize, reader: ReaderChoice) -> Options {
    let block = Bytes::new(block_pages * 4096);
    let staging = Bytes::new(block.get() * (depth as u64 + 2));
    Options { reader, block, depth: Some(depth), staging, verify: true, ..Options::default() }
}

fn files() -> impl Strategy<Value = Vec<Vec<Shape>>> {
    prop::collection::vec(prop::collection::vec(shape(), 0..6), 1..4)
}

#[test]
fn every_byte_on_every_gpu_is_what_a_plain_read_of_the_files_gives() {
    let machines = [1, 2, 4, 8].map(Machine::new);
    let reader = prop::sample::select(vec![ReaderChoice::IoUring, ReaderChoice::Pread]);
    let cases = (files(), 0u64..9000, 0u64..5000, 0usize..4, (1u64..9, 1usize..5, reader));
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((shapes, start, tail, machine, (block, depth, reader)) in cases)| {
        let machine = &machines[machine];
        let fixture = Fixture::new(&shapes, start, tail, machine.gpus.len());
        let (report, found) = machine.load(&fixture, &options(block, depth, reader));
        let report = report.unwrap();
        prop_assert_eq!(found, fixture.expected());
        prop_assert_eq!(report.weight_bytes, fixture.bytes());
        let copied: u64 = fixture.copies.iter().flatten().flatten().map(WeightCopy::bytes).sum();
        prop_assert_eq!(report.bytes_per_rank.iter().sum::<u64>(), copied);
        // What is read besides is less than two pages an extent, or one at each cut.
        let extents: usize = fixture.files.iter().map(|file| file.extents.len()).sum();
        prop_assert!(report.bytes_read - report.weight_bytes < 8192 * extents as u64 + 1);
        prop_assert_eq!(report.resubmitted, 0);
        prop_assert_eq!(report.verified.map(|verified| verified.bytes), Some(copied));
    });
}

const PLAIN: Shape = Shape { gap: 0, rows: 40, row: 1000, element: 1, axis: Axis::Replicated };

const MIXED: [Shape; 4] = [
    Shape { gap: 3, rows: 31, row: 97, element: 1, axis: Axis::Columns },
    Shape { gap: 0, rows: 0, row: 5, element: 4, axis: Axis::Rows },
    Shape { gap: 0, rows: 40, row: 100, element: 4, axis: Axis::Rows },
    Shape { gap: 0, rows: 7, row: 1000, element: 2, axis: Axis::Replicated },
];

#[test]
fn a_byte_that_differs_on_one_gpu_is_found_wherever_it_is() {
    let machine = Machine::new(4);
    let fixture = Fixture::new(&[MIXED.to_vec(), MIXED.to_vec()], 100, 0, 4);
    let arenas = machine.arenas(fixture.arena_bytes);
    let references: Vec<_> = arenas.iter().collect();
    let target = Target::Arenas { gpus: &machine.gpus, arenas: &references };
    run(&fixture, target, &options(3, 2, ReaderChoice::Best), &Silent, Instant::now()).unwrap();
    let files: Vec<_> = fixture.files.iter().map(|file| ShardFile::open(file).unwrap()).collect();
    let verify = || super::verify(&fixture, &files, &machine.gpus, &references, 12288, &Silent);
    assert_eq!(verify().unwrap().tensors, 8);
    for (file, piece, rank) in [(0, 0, 3), (1, 0, 0), (0, 2, 1), (1, 3, 2)] {
        let copy = fixture.copies[file][piece].iter().find(|copy| copy.rank == rank).unwrap();
        // The last byte of the last row.
        let last = copy.rows - 1;
        let source = copy.source + last * copy.source_pitch + copy.row_bytes - 1;
        let arena = copy.destination + last * copy.destination_pitch + copy.row_bytes - 1;
        let at = driver::address::GpuVa::new(arenas[rank].va().get() + arena);
        let mut transfers = Transfers::new(&machine.gpus[rank]).unwrap();
        let mut byte = [0];
        transfers.read(at, &mut byte).unwrap();
        transfers.write(at, &[!byte[0]]).unwrap();
        match verify().unwrap_err() {
            LoadError::Verify { tensor, rank: found_rank, offset, arena: found_arena, expected, found, .. } => {
                assert_eq!(tensor, fixture.name(file, piece));
                assert_eq!((found_rank, offset, found_arena), (rank, source, arena));
                assert_eq!((expected, found), (byte[0], !byte[0]));
            }
            other => panic!("{other}"),
        }
        transfers.write(at, &byte).unwrap();
    }
    verify().unwrap();
}

#[test]
fn a_manifest_is_written_once_and_then_tells_which_tensor_has_changed() {
    let fixture = Fixture::new(&[MIXED.to_vec(), vec![PLAIN; 3]], 100, 0, 2);
    let path = fixture.folder.path().join("sums");
    let load = |block, depth| {
        let options = Options { checksums: Some(path.clone()), ..options(block, depth, ReaderChoice::Pread) };
        run(&fixture, Target::Nowhere { ranks: 2 }, &options, &Silent, Instant::now())
    };
    assert_eq!(load(2, 3).unwrap().manifest, Some(super::Manifest::Written));
    let manifest = fs::read_to_string(&path).unwrap();
    for (file, plan) in fixture.files.iter().enumerate() {
        let bytes = fs::read(&plan.path).unwrap();
        for (piece, range) in plan.pieces.iter().enumerate() {
            let digest = xxhash_rust::xxh3::xxh3_128(&bytes[range.start as usize..range.end as usize]);
            let line = format!("{digest:032x} {} {}\n", range.end - range.start, fixture.name(file, piece));
            assert!(manifest.contains(&line), "{line} is not in {manifest}");
        }
    }
    assert_eq!(load(5, 1).unwrap().manifest, Some(super::Manifest::Compared { tensors: 7 }));

    let mut bytes = fs::read(&fixture.files[1].path).unwrap();
    bytes[fixture.files[1].pieces[1].start as usize] ^= 1;
    fs::write(&fixture.files[1].path, bytes).unwrap();
    let error = load(5, 1).unwrap_err().to_string();
    assert!(error.contains("tensor 1 of 1") && error.contains("download this shard again"), "{error}");

    fs::write(&path, format!("{manifest}{:032x} 1 something else\n", 1)).unwrap();
    assert!(matches!(load(5, 1), Err(LoadError::Checksum { .. })));
}

/// A reader that gives what a tired kernel gives: reads cut short, interrupted, refused for now, and out of order.
struct Tired {
    threads: Threads,
    held: Vec<Completion>,
    noise: Cell<u64>,
    /// What remains of the file behind each token's offset is unknown here, so lengths are cut before the read.
    refusals: u32,
}

impl Tired {
    fn roll(&self, sides: u64) -> u64 {
        let mut noise = self.noise.get();
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        self.noise.set(noise);
        noise % sides
    }
}

// SAFETY: it writes through `Threads` only, with reads that are parts of those it was given.
unsafe impl Reader for Tired {
    fn kind(&self) -> ReaderKind {
        ReaderKind::Pread
    }

    unsafe fn submit(&mut self, mut read: Read) -> io::Result<()> {
        let refused = [libc::EINTR, libc::EAGAIN];
        if self.refusals > 0 && self.roll(4) == 0 {
            self.refusals -= 1;
            let error = io::Error::from_raw_os_error(refused[self.roll(2) as usize]);
            self.held.push(Completion { token: read.token, result: Err(error) });
            return Ok(());
        }
        if self.roll(3) > 0 {
            read.bytes = (read.bytes / 512 / (1 + self.roll(4) as u32)).max(1) * 512;
        }
        // SAFETY: the caller's promise holds for a part of the read as well.
        unsafe { self.threads.submit(read) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, _: Duration, done: &mut Vec<Completion>) -> io::Result<()> {
        self.threads.wait(Duration::from_millis(1), &mut self.held)?;
        while !self.held.is_empty() && self.roll(4) > 0 {
            let taken = self.roll(self.held.len() as u64) as usize;
            done.push(self.held.swap_remove(taken));
        }
        Ok(())
    }
}

/// Runs a pipeline that copies nowhere.
fn read_with(fixture: &Fixture, reader: &mut dyn Reader, progress: &dyn Progress) -> Result<u64, Stopped> {
    let open = |file: &PlannedFile| ShardFile::open(file).unwrap();
    let mut files: Vec<_> = fixture.files.iter().map(open).collect();
    let staging = Staging::host(Bytes::new(16 * 8192)).unwrap();
    let parts = Parts {
        weights: fixture,
        streams: streams(fixture, &files),
        files: &mut files,
        staging: &staging,
        reader,
        copier: &mut super::copy::Discard,
        progress,
        ranks: fixture.ranks,
        block: 8192,
        depth: super::depth::Depth::given(5),
        checksums: None,
    };
    Pipeline::new(parts).run().map(|counts| counts.weight_bytes)
}

#[test]
fn reads_cut_short_interrupted_refused_and_out_of_order_still_bring_every_byte() {
    let machine = Machine::new(2);
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(shapes in files(), start in 0u64..9000, seed in 1u64..u64::MAX)| {
        let fixture = Fixture::new(&shapes, start, 0, 2);
        let open = |file: &PlannedFile| ShardFile::open(file).unwrap();
        let mut files: Vec<_> = fixture.files.iter().map(open).collect();
        let staging = Staging::shared(&machine.gpus, Bytes::new(16 * 8192)).unwrap();
        let arenas = machine.arenas(fixture.arena_bytes);
        let references: Vec<_> = arenas.iter().collect();
        let threads = Threads::new(3).unwrap();
        let mut reader = Tired { threads, held: Vec::new(), noise: Cell::new(seed), refusals: 200 };
        let mut copier = super::SdmaCopier::new(&machine.gpus, &references, staging.va(), &Silent).unwrap();
        let parts = Parts {
            weights: &fixture,
            streams: streams(&fixture, &files),
            files: &mut files,
            staging: &staging,
            reader: &mut reader,
            copier: &mut copier,
            progress: &Silent,
            ranks: 2,
            block: 8192,
            depth: super::depth::Depth::given(5),
            checksums: None,
        };
        let counts = Pipeline::new(parts).run().unwrap();
        prop_assert_eq!(counts.weight_bytes, fixture.bytes());
        prop_assert!(counts.bytes_read >= counts.weight_bytes);
        prop_assert_eq!(machine.read_back(&arenas, fixture.arena_bytes), fixture.expected());
    });
}

/// Fails its third read.
struct Failing {
    threads: Threads,
    reads: u32,
    result: fn() -> io::Result<u32>,
}

// SAFETY: as for `Tired`.
unsafe impl Reader for Failing {
    fn kind(&self) -> ReaderKind {
        ReaderKind::Pread
    }

    unsafe fn submit(&mut self, read: Read) -> io::Result<()> {
        // SAFETY: passed on unchanged.
        unsafe { self.threads.submit(read) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, limit: Duration, done: &mut Vec<Completion>) -> io::Result<()> {
        self.threads.wait(limit, done)?;
        for completion in done {
            self.reads += 1;
            if self.reads == 3 {
                completion.result = (self.result)();
            }
        }
        Ok(())
    }
}

fn failure(result: fn() -> io::Result<u32>) -> (String, Stopped) {
    let fixture = Fixture::new(&[vec![PLAIN; 3]], 100, 0, 1);
    let mut reader = Failing { threads: Threads::new(1).unwrap(), reads: 0, result };
    let stopped = read_with(&fixture, &mut reader, &Silent).unwrap_err();
    (stopped.error.to_string(), stopped)
}

#[test]
fn a_read_that_fails_names_file_and_offset_and_leaves_no_read_behind() {
    let (message, stopped) = failure(|| Err(io::Error::from_raw_os_error(libc::EIO)));
    assert!(message.contains("at 16384 of ") && message.contains("0.safetensors"), "{message}");
    assert!(message.contains("the disk cannot read it"), "{message}");
    assert_eq!(stopped.reads_in_flight, 0);
}

#[test]
fn a_file_that_ends_early_names_file_and_offset() {
    let (message, _) = failure(|| Ok(0));
    assert!(message.contains("0.safetensors ends at 16384, 8192 bytes before"), "{message}");
}

#[test]
fn a_kernel_that_keeps_refusing_a_read_is_given_up() {
    struct Refusing(Vec<u64>);
    // SAFETY: it writes nowhere.
    unsafe impl Reader for Refusing {
        fn kind(&self) -> ReaderKind {
            ReaderKind::Pread
        }
        unsafe fn submit(&mut self, read: Read) -> io::Result<()> {
            self.0.push(read.token);
            Ok(())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn wait(&mut self, _: Duration, done: &mut Vec<Completion>) -> io::Result<()> {
            let refuse = |token| Completion { token, result: Err(io::Error::from_raw_os_error(libc::EINTR)) };
            done.extend(self.0.drain(..).map(refuse));
            Ok(())
        }
    }
    let fixture = Fixture::new(&[vec![PLAIN]], 0, 0, 1);
    let stopped = read_with(&fixture, &mut Refusing(Vec::new()), &Silent).unwrap_err();
    assert!(matches!(*stopped.error, LoadError::Read { .. }), "{}", stopped.error);
}

#[test]
fn a_file_written_to_while_it_is_read_is_an_error() {
    struct Meddler<'a> {
        path: &'a Path,
        done: AtomicBool,
    }
    impl Progress for Meddler<'_> {
        fn advance(&self, _: u64, _: Option<u16>) {
            if !self.done.swap(true, Ordering::Relaxed) {
                let file = fs::OpenOptions::new().write(true).open(self.path).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            }
        }
    }
    let fixture = Fixture::new(&[vec![PLAIN; 3], vec![PLAIN]], 0, 0, 1);
    for file in &fixture.files {
        let meddler = Meddler { path: &file.path, done: AtomicBool::new(false) };
        let mut reader = Threads::new(1).unwrap();
        let stopped = read_with(&fixture, &mut reader, &meddler).unwrap_err();
        let message = stopped.error.to_string();
        assert!(message.contains(&*file.path.to_string_lossy()) && message.contains("it was written to"), "{message}");
    }
}

#[test]
fn a_cancelled_load_gives_up_reads_that_do_not_end_and_says_how_many() {
    struct Cancelled;
    impl Progress for Cancelled {
        fn is_cancelled(&self) -> bool {
            true
        }
    }
    /// Takes reads and never ends them.
    struct Stuck;
    // SAFETY: it writes nowhere.
    unsafe impl Reader for Stuck {
        fn kind(&self) -> ReaderKind {
            ReaderKind::Pread
        }
        unsafe fn submit(&mut self, _: Read) -> io::Result<()> {
            Ok(())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn wait(&mut self, limit: Duration, _: &mut Vec<Completion>) -> io::Result<()> {
            std::thread::sleep(limit);
            Ok(())
        }
    }
    let fixture = Fixture::new(&[vec![PLAIN; 9]], 0, 0, 1);
    let stopped = read_with(&fixture, &mut Stuck, &Cancelled).unwrap_err();
    assert!(matches!(*stopped.error, LoadError::Interrupted));
    assert_eq!(stopped.reads_in_flight, 5);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let good = options(2, 3, ReaderChoice::Best);
    assert!(good.check(4096, 1).is_ok());
    let refused = [
        Options { block: Bytes::new(5000), ..good.clone() },
        Options { block: Bytes::new(0), ..good.clone() },
        Options { depth: Some(0), ..good.clone() },
        Options { staging: Bytes::new(3 * 8192), ..good.clone() },
    ];
    for options in refused {
        assert!(matches!(options.check(4096, 1), Err(LoadError::Option { .. })), "{options:?}");
    }
    assert!(matches!(good.check(16384, 1), Err(LoadError::Option { .. })));
    assert!(matches!(good.check(4096, 2), Err(LoadError::Option { .. })));
}
