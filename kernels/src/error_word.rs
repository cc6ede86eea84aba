//! The sticky error word of a GPU: the first failure of any kernel stays until the host clears it.
//!
//! ```text
//! 63    56 55   52 51    48 47        32 31          0
//! | what  | rank  | blamed | collective | detail      |
//! ```

/// The 64 bits as kernels write them; 0 is no error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorWord(pub u64);

/// A failure that a kernel reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A peer's data for a collective did not come in time.
    PeerTimeout {
        /// Rank that waited.
        rank: u8,
        /// Rank that did not send.
        peer: u8,
        /// Which collective of the graph.
        collective: u16,
        /// The epoch waited for.
        epoch: u32,
    },
    /// A rank contributed an infinity or a NaN to a collective.
    NotFinite {
        /// Rank that saw it.
        rank: u8,
        /// Rank it came from.
        peer: u8,
        /// Which collective of the graph.
        collective: u16,
        /// Which token of the run.
        token: u32,
    },
    /// A rank's logits hold a NaN.
    NanLogits {
        /// Rank that saw it.
        rank: u8,
        /// Rank whose logits they are.
        peer: u8,
        /// Epoch of the run's last collective.
        epoch: u32,
    },
    /// A token beyond the vocabulary.
    Token {
        /// Rank that saw it.
        rank: u8,
        /// Which token of the run, modulo 2^16.
        index: u16,
        /// The token.
        token: u32,
    },
    /// A token beyond the end of the latent cache.
    Context {
        /// Rank that saw it.
        rank: u8,
        /// Which token of the run, modulo 2^16.
        index: u16,
        /// Its position.
        position: u32,
    },
    /// A code that this crate's kernels do not write: the word was overwritten.
    Unknown(u64),
}

impl ErrorWord {
    /// What it says; `None` if nothing failed.
    pub fn failure(self) -> Option<Failure> {
        let [d0, d1, d2, d3, c0, c1, ranks, what] = self.0.to_le_bytes();
        let (rank, peer) = (ranks >> 4, ranks & 15);
        let (place, detail) = (u16::from_le_bytes([c0, c1]), u32::from_le_bytes([d0, d1, d2, d3]));
        Some(match what {
            0 if self.0 == 0 => return None,
            1 => Failure::PeerTimeout { rank, peer, collective: place, epoch: detail },
            2 => Failure::NotFinite { rank, peer, collective: place, token: detail },
            3 => Failure::NanLogits { rank, peer, epoch: detail },
            4 => Failure::Token { rank, index: place, token: detail },
            5 => Failure::Context { rank, index: place, position: detail },
            _ => Failure::Unknown(self.0),
        })
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::PeerTimeout { rank, peer, collective, epoch } => write!(
                f,
                "rank {rank} waited for rank {peer} in collective {collective} of the graph (epoch {epoch}) until its time-out"
            ),
            Self::NotFinite { rank, peer, collective, token } => write!(
                f,
                "rank {peer} sent an infinity or a NaN in collective {collective} of the graph for token {token} of the run \
                 (seen by rank {rank})"
            ),
            Self::NanLogits { rank, peer, epoch } => {
                write!(f, "the logits of rank {peer} hold a NaN (seen by rank {rank}, epoch {epoch})")
            }
            Self::Token { rank, index, token } => {
                write!(f, "token {index} of the run is {token}, beyond the vocabulary (seen by rank {rank})")
            }
            Self::Context { rank, index, position } => {
                write!(f, "token {index} of the run has position {position}, beyond the latent cache of rank {rank}")
            }
            Self::Unknown(word) => write!(f, "the error word is {word:#018x}, which no kernel writes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_no_failure() {
        assert_eq!(ErrorWord(0).failure(), None);
    }

    #[test]
    fn a_time_out_names_rank_peer_collective_and_epoch() {
        let word = ErrorWord(0x0135_0102_0000_0007);
        let failure = Failure::PeerTimeout { rank: 3, peer: 5, collective: 0x102, epoch: 7 };
        assert_eq!(word.failure(), Some(failure));
    }

    #[test]
    fn bits_that_no_kernel_writes_are_not_mistaken_for_success() {
        assert_eq!(ErrorWord(9).failure(), Some(Failure::Unknown(9)));
        assert_eq!(ErrorWord(u64::MAX).failure(), Some(Failure::Unknown(u64::MAX)));
    }
}
