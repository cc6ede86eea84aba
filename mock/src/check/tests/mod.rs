mod bench;
mod hazards;
mod lds;
mod memory;
mod races;
mod registers;
mod waits;
