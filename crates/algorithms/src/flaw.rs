//! Planted mistakes: a test or a student switches one on, and a checker has to find it.
//!
//! A mistake stands in lines of its own, so that a reader who compares with the paper can pass over
//! them: without these lines the algorithm is the published one.
//!
//! Other crates plant theirs in the same way: each has a list of its own, and a module `flaw` with
//! `is_planted`, which is this one's outside of its tests.

/// Is this mistake planted? Always false where mistakes cannot be planted, so that it costs nothing.
#[macro_export]
#[doc(hidden)]
#[allow(clippy::crate_in_macro_def, reason = "each crate has a module `flaw` of its own")]
macro_rules! flaw {
    ($name:ident) => {{
        #[cfg(any(test, feature = "flaws"))]
        let planted = crate::flaw::is_planted(stringify!($name));
        #[cfg(not(any(test, feature = "flaws")))]
        let planted = false;
        planted
    }};
}

/// `is_planted` and `plant` for the tests of a crate, which plant one mistake on each thread.
#[macro_export]
#[doc(hidden)]
macro_rules! plant_by_thread {
    () => {
        std::thread_local! {
            static PLANTED: core::cell::Cell<Option<&'static str>> =
                const { core::cell::Cell::new(None) };
        }

        pub(crate) fn is_planted(name: &str) -> bool {
            PLANTED.get() == Some(name)
        }

        /// Runs `test` with the mistake planted on this thread.
        pub(crate) fn plant<R>(name: &'static str, test: impl FnOnce() -> R) -> R {
            PLANTED.set(Some(name));
            let result = test();
            PLANTED.set(None);
            result
        }
    };
}

/// A mistake that can be planted.
#[cfg(any(test, feature = "flaws"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// The algorithm that it is in, `family/name`; of a layer, `family/views` or `reliable`.
    pub algorithm: &'static str,
    /// As typed.
    pub name: &'static str,
    /// What is wrong then.
    pub answer: &'static str,
}

/// All mistakes of the catalogue.
#[cfg(any(test, feature = "flaws"))]
#[rustfmt::skip]
pub const FLAWS: &[Flaw] = &[
    Flaw { algorithm: "mutex/central", name: "IgnoreHolder", answer: "The coordinator grants every REQUEST at once, whoever is inside." },
    Flaw { algorithm: "mutex/central", name: "DropOvertaking", answer: "A REQUEST that overtakes the RELEASE of the same node is taken for a duplicate and dropped." },
    Flaw { algorithm: "mutex/central", name: "TellTwice", answer: "A user is told twice that it may enter, for one wish." },
    Flaw { algorithm: "mutex/lamport", name: "NeverAcknowledge", answer: "A REQUEST is never acknowledged, so its sender does not hear something younger of all." },
    Flaw { algorithm: "mutex/lamport", name: "IgnoreTies", answer: "Requests of the same time are not told apart by the numbers of their nodes." },
    Flaw { algorithm: "mutex/lamport", name: "IgnoreQueue", answer: "A node enters when it has heard of all, whether or not its request is the oldest one." },
    Flaw { algorithm: "mutex/ricart-agrawala", name: "IgnoreTies", answer: "Of two wishes of the same time both go first: the numbers of the nodes are not compared." },
    Flaw { algorithm: "mutex/ricart-agrawala", name: "NoDeferralInside", answer: "A node that is inside answers REQUESTs at once." },
    Flaw { algorithm: "mutex/ricart-agrawala-acked", name: "IgnoreTies", answer: "Of two wishes of the same time both go first: the numbers of the nodes are not compared." },
    Flaw { algorithm: "mutex/ricart-agrawala-acked", name: "DeferInSilence", answer: "Who keeps an answer back does not confirm the request, and is taken for dead." },
    Flaw { algorithm: "mutex/ricart-agrawala-acked", name: "NoProbe", answer: "Nobody asks those who owe an answer whether they live." },
    Flaw { algorithm: "mutex/carvalho-roucairol", name: "IgnoreTies", answer: "Of two wishes of the same time both go first: the numbers of the nodes are not compared." },
    Flaw { algorithm: "mutex/carvalho-roucairol", name: "KeepPermission", answer: "A permission that was given away still counts as one's own." },
    Flaw { algorithm: "mutex/carvalho-roucairol", name: "DoNotAskAgain", answer: "Who gives a permission away while it waits itself does not ask for it again." },
    Flaw { algorithm: "mutex/maekawa-basic", name: "LockTwice", answer: "An arbiter that is locked locks itself for the next one too." },
    Flaw { algorithm: "mutex/maekawa-basic", name: "ForgetTheQueue", answer: "An arbiter that becomes free forgets who waited for it." },
    Flaw { algorithm: "mutex/maekawa", name: "ForgetEarlyInquiry", answer: "An INQUIRE that overtakes the LOCKED it is about is ignored." },
    Flaw { algorithm: "mutex/maekawa", name: "GiveWayInside", answer: "A node that is inside gives a lock back when it is asked to." },
    Flaw { algorithm: "mutex/cao-singhal", name: "ForgetEarlyRelease", answer: "A RELEASE that is faster than that of the holder before is forgotten." },
    Flaw { algorithm: "mutex/cao-singhal", name: "AnyTenure", answer: "A message about an earlier permission is taken for one about the present one." },
    Flaw { algorithm: "mutex/majority", name: "KeepRelinquished", answer: "Who gives a vote back goes on counting it." },
    Flaw { algorithm: "mutex/majority", name: "NoInquire", answer: "A voter never asks for its vote back, although an older wish came." },
    Flaw { algorithm: "mutex/majority", name: "ForgetEarlyInquire", answer: "An INQUIRE that overtakes the VOTE it is about is ignored." },
    Flaw { algorithm: "mutex/sanders", name: "NeverYield", answer: "Nobody gives a permission back when it is asked to." },
    Flaw { algorithm: "mutex/sanders", name: "ForgetEarlyInquiry", answer: "An INQUIRE that overtakes the permission it is about is ignored." },
    Flaw { algorithm: "mutex/token-ring", name: "PassOnEntering", answer: "The token is passed on when its holder enters, not when it leaves." },
    Flaw { algorithm: "mutex/token-ring", name: "KeepToken", answer: "Who leaves keeps the token instead of passing it on." },
    Flaw { algorithm: "mutex/token-ring", name: "StayLooksLost", answer: "A token that is in use is taken for lost, and a new one is made." },
    Flaw { algorithm: "mutex/token-ring", name: "AskOnce", answer: "The coordinator asks everybody once, not twice, and so can miss a token that was under way." },
    Flaw { algorithm: "mutex/suzuki-kasami", name: "AnswerOldRequests", answer: "The holder sends the token to whoever asks, also if the request was granted long ago." },
    Flaw { algorithm: "mutex/suzuki-kasami", name: "KeepCopy", answer: "The token is sent and kept as well." },
    Flaw { algorithm: "mutex/suzuki-kasami", name: "ForgetRequests", answer: "Who leaves queues nobody that asked meanwhile." },
    Flaw { algorithm: "mutex/raymond", name: "AskFirst", answer: "A node asks for the token before it passes it on, and not after that: whoever still waits behind it is forgotten." },
    Flaw { algorithm: "mutex/raymond", name: "KeepToken", answer: "The token is sent and kept as well." },
    Flaw { algorithm: "mutex/singhal", name: "KeepCopy", answer: "The token is sent and kept as well." },
    Flaw { algorithm: "mutex/singhal", name: "NoCrossing", answer: "A requester that learns of another one does not send it its own request." },
    Flaw { algorithm: "mutex/naimi-trehel", name: "ForgetAsker", answer: "Who waits or is inside forgets who asked it." },
    Flaw { algorithm: "mutex/naimi-trehel", name: "KeepToken", answer: "The token is sent and kept as well." },
    Flaw { algorithm: "mutex/home", name: "ForgetTheEnd", answer: "Who is at the end of a line of two or more is not told who comes after it." },
    Flaw { algorithm: "mutex/home", name: "KeepToken", answer: "The token is sent and kept as well." },
    Flaw { algorithm: "election/bully", name: "AnswerOnly", answer: "A better node answers, and does not hold an election of its own." },
    Flaw { algorithm: "election/bully", name: "NoSecondTimer", answer: "Who was answered waits for a coordinator for ever." },
    Flaw { algorithm: "election/bully-broadcast", name: "SendOnce", answer: "Who has sent its candidacy does not answer an election that opens after that." },
    Flaw { algorithm: "election/bully-broadcast", name: "NobodyAnswers", answer: "Nobody contradicts a worse candidate." },
    Flaw { algorithm: "election/ring-list", name: "FirstLeads", answer: "The first of the list leads, not the best." },
    Flaw { algorithm: "election/ring-list", name: "DeadLeaderStands", answer: "A leader that died while the list went round is announced all the same." },
    Flaw { algorithm: "election/ring-list", name: "NobodySkipped", answer: "The list is sent to the next node, also if that is dead." },
    Flaw { algorithm: "election/chang-roberts", name: "NeverStop", answer: "Worse candidacies are passed on too." },
    Flaw { algorithm: "election/chang-roberts", name: "WorseCountsAsOwn", answer: "A worse candidacy that comes in is taken for one's own." },
    Flaw { algorithm: "election/chang-roberts-bidirectional", name: "NeverStop", answer: "Worse candidacies are passed on too." },
    Flaw { algorithm: "election/chang-roberts-bidirectional", name: "TurnBack", answer: "A candidacy is sent back to where it came from." },
    Flaw { algorithm: "election/hirschberg-sinclair", name: "NobodyRefuses", answer: "A better node lets worse candidacies pass." },
    Flaw { algorithm: "election/hirschberg-sinclair", name: "SleepOn", answer: "A node that is asked does not wake up and stand itself." },
    Flaw { algorithm: "election/lelann", name: "StartAfterRelay", answer: "A node that has passed a candidacy on stands for election after that." },
    Flaw { algorithm: "election/lelann", name: "NobodyEnters", answer: "Nobody enters itself into the list of candidates." },
    Flaw { algorithm: "election/itai-rodeh", name: "RememberOldRounds", answer: "Numbers of the round before still count." },
    Flaw { algorithm: "election/itai-rodeh", name: "OnceIsEnough", answer: "Any number that is there once wins, not only the highest such one." },
    Flaw { algorithm: "election/tree-echo", name: "EchoOwnRank", answer: "An echo carries one's own rank, not the best of the branch." },
    Flaw { algorithm: "election/tree-echo", name: "LeavesAreNotTold", answer: "The news of the leader does not reach the leaves." },
    Flaw { algorithm: "election/tree-dfs", name: "EverybodyStops", answer: "A second walk ends where a first one was, even if it is of a better starter." },
    Flaw { algorithm: "election/tree-dfs", name: "NobodyStops", answer: "A walk of a worse starter goes on beside that of a better one." },
    Flaw { algorithm: "election/tree-saturation", name: "ProposeOwnRank", answer: "A proposal carries one's own rank, not the best of the branch." },
    Flaw { algorithm: "election/tree-saturation", name: "ProposeOnce", answer: "After the tree was repaired nobody proposes again." },
    Flaw { algorithm: "election/tree-saturation", name: "LeavesAreNotTold", answer: "The news of the leader does not reach the leaves." },
    Flaw { algorithm: "election/graph-dfs", name: "NobodyKills", answer: "No token stops another one." },
    Flaw { algorithm: "election/graph-dfs", name: "BounceUnmarked", answer: "Who sends a token back does not mark the edge, and sends its own token over it again." },
    Flaw { algorithm: "election/floodmax", name: "ForgetOwn", answer: "The last rank heard counts, not the best." },
    Flaw { algorithm: "election/floodmax", name: "OneRoundFewer", answer: "One round is left out." },
    Flaw { algorithm: "election/adoption", name: "AnswerTheParent", answer: "The explorer of the parent is answered like any other one." },
    Flaw { algorithm: "election/adoption", name: "LeaveTheParent", answer: "A node that is adopted by a better tree does not explore its former parent." },
    Flaw { algorithm: "election/firewire", name: "BothWin", answer: "Where two contend for the root, both win." },
    Flaw { algorithm: "election/firewire", name: "AnyEpoch", answer: "Messages from before a bus reset count after it." },
    Flaw { algorithm: "election/firewire", name: "EarlyRoot", answer: "A node takes itself for the root while one neighbour has not spoken." },
    Flaw { algorithm: "election/registry-tree", name: "NobodyIsEnrolled", answer: "Who registers is not added to those who are there." },
    Flaw { algorithm: "election/registry-tree", name: "AnyLevel", answer: "A node takes a parent of any level, also one that hangs below it." },
    Flaw { algorithm: "election/registry-tree", name: "MinusOne", answer: "A node without a level is taken for the root." },
    Flaw { algorithm: "group/ack-multicast", name: "DeliverEarly", answer: "A message is delivered though one before it is missing." },
    Flaw { algorithm: "group/ack-multicast", name: "ConfirmOnce", answer: "A message that comes twice is not confirmed again." },
    Flaw { algorithm: "group/ack-multicast", name: "StableAtFirstAck", answer: "A message is forgotten when the first one has confirmed it." },
    Flaw { algorithm: "group/ack-multicast", name: "NewestFirst", answer: "Of the messages that wait for room, the newest one is sent first." },
    Flaw { algorithm: "group/nack-multicast", name: "DeafToHeartbeats", answer: "Nobody listens to heartbeats, so that a lost last message goes unnoticed." },
    Flaw { algorithm: "group/ack-multicast", name: "ForgetNewcomers", answer: "Who joins is welcomed, and nothing is sent to it." },
    Flaw { algorithm: "group/nack-multicast", name: "DeliverEarly", answer: "A message is delivered though one before it is missing." },
    Flaw { algorithm: "group/nack-multicast", name: "AskOnce", answer: "A lost message is asked for only once." },
    Flaw { algorithm: "group/srm", name: "NoSecondRequest", answer: "A lost message is asked for only once." },
    Flaw { algorithm: "group/srm", name: "NoSuppression", answer: "A request is sent although somebody else has asked already." },
    Flaw { algorithm: "group/srm", name: "NoHoldDown", answer: "A repair is sent again right after it was sent." },
    Flaw { algorithm: "group/srm", name: "DeliverTwice", answer: "A repair of what is there already is delivered again." },
    Flaw { algorithm: "group/sequencer", name: "SamePlace", answer: "All messages are given the same place." },
    Flaw { algorithm: "group/sequencer", name: "SkipGaps", answer: "A message is delivered although the place before it is empty." },
    Flaw { algorithm: "group/token-order", name: "OwnNumbers", answer: "The holder of the token counts on from what it has itself, not from what the token says." },
    Flaw { algorithm: "group/token-order", name: "NoAruId", answer: "Anybody raises the token's word on what all have, not only who lowered it." },
    Flaw { algorithm: "group/token-order", name: "SkipGaps", answer: "A message is delivered although the place before it is empty." },
    Flaw { algorithm: "group/abcast", name: "OwnIsFinal", answer: "The sender's own proposal is taken for final." },
    Flaw { algorithm: "group/abcast", name: "ForgetFinals", answer: "The clock does not witness a final priority, and a later proposal can come out lower." },
    Flaw { algorithm: "group/lamport-order", name: "AnswerSenderOnly", answer: "Only the sender hears the answer, not all." },
    Flaw { algorithm: "group/lamport-order", name: "SenderIsEnough", answer: "A message is delivered when its sender was heard again, not all." },
    Flaw { algorithm: "group/virtual-synchrony", name: "InstallWithoutMissing", answer: "A view is installed though somebody lacks a message." },
    Flaw { algorithm: "group/virtual-synchrony", name: "DeliverBeforeFlushCompletes", answer: "Who has answered a FLUSH goes on delivering." },
    Flaw { algorithm: "group/virtual-synchrony", name: "KeepLatePlaces", answer: "Places that a dead sequencer gave to messages nobody has are kept." },
    Flaw { algorithm: "group/virtual-synchrony", name: "IgnoreCauses", answer: "A message in causal order is delivered before what its sender knew." },
    Flaw { algorithm: "group/extended-virtual-synchrony", name: "DoneWithoutRepair", answer: "A node says that it has recovered though it lacks messages." },
    Flaw { algorithm: "group/extended-virtual-synchrony", name: "SafeIsAgreed", answer: "A safe message is delivered before all are known to have it." },
    Flaw { algorithm: "detector/heartbeat", name: "NeverForgive", answer: "A node that is heard again stays suspected." },
    Flaw { algorithm: "detector/heartbeat", name: "WatchOnce", answer: "After a heartbeat nobody waits for the next one." },
    Flaw { algorithm: "detector/phi-accrual", name: "NoFloor", answer: "The deviation of the intervals may be nothing, so that the least delay is suspicious." },
    Flaw { algorithm: "detector/phi-accrual", name: "OnlyFirstGap", answer: "After a heartbeat nobody waits for the next one." },
    Flaw { algorithm: "mutex/views", name: "ForgetHolder", answer: "A view begins as if nobody were inside." },
    Flaw { algorithm: "mutex/views", name: "ForgetWaiting", answer: "Who waited does not ask again in the next view." },
    Flaw { algorithm: "mutex/views", name: "IgnoreCounters", answer: "Nobody listens to the counters that messages carry, so that tokens do not grow." },
    Flaw { algorithm: "election/views", name: "ElectOnce", answer: "In the next view nobody asks for a leader again." },
    Flaw { algorithm: "reliable", name: "DeliverTwice", answer: "What comes twice is handed on twice." },
    Flaw { algorithm: "reliable", name: "AnyOrder", answer: "Messages are handed on as they come." },
    Flaw { algorithm: "reliable", name: "NoResend", answer: "What is lost is not sent again." },
];

#[cfg(test)]
plant_by_thread!();

#[cfg(all(feature = "flaws", not(test)))]
pub use everywhere::{is_planted, plant, uproot};

/// One mistake for the whole process: the checker works on many threads.
#[cfg(all(feature = "flaws", not(test)))]
mod everywhere {
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::Flaw;

    /// What its name comes to; 0 if there is none.
    static PLANTED: AtomicUsize = AtomicUsize::new(0);

    /// Fowler, Noll and Vo's hash: of so few names no two come to the same.
    fn sum(name: &str) -> usize {
        let step = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        name.bytes().fold(0x811c_9dc5, step) as usize
    }

    /// Is the mistake of this name planted?
    #[inline]
    #[must_use]
    pub fn is_planted(name: &str) -> bool {
        let planted = PLANTED.load(Relaxed);
        planted != 0 && planted == sum(name)
    }

    /// Plants this mistake, and no other, in every run of this process from now on.
    pub fn plant(flaw: &Flaw) {
        PLANTED.store(sum(flaw.name), Relaxed);
    }

    /// Takes out whatever mistake is planted.
    pub fn uproot() {
        PLANTED.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{fs, string::String};

    use super::FLAWS;
    use crate::Catalogued;
    use crate::detector::Detector;
    use crate::election::Election;
    use crate::group::Group;
    use crate::mutex::Mutex;

    /// Adds what stands in `flaw!(..)` in the files below a folder.
    fn collect(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if !path.ends_with("flaw.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let hooks = text.split("flaw!(").skip(1);
                found.extend(hooks.map(|rest| rest.split(')').next().unwrap().into()));
            }
        }
    }

    /// Layers, which are no algorithms of the catalogue.
    const LAYERS: [&str; 3] = ["mutex/views", "election/views", "reliable"];

    #[test]
    fn the_list_has_every_mistake_that_is_planted_and_no_other() {
        let mut planted = BTreeSet::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut planted);
        let listed: BTreeSet<String> = FLAWS.iter().map(|flaw| flaw.name.into()).collect();
        assert_eq!(listed, planted);
        let known = |name: &str| {
            let catalogues =
                [Mutex::CATALOGUE, Election::CATALOGUE, Group::CATALOGUE, Detector::CATALOGUE];
            catalogues.concat().iter().any(|meta| meta.name == name)
        };
        for flaw in FLAWS {
            let layer = LAYERS.contains(&flaw.algorithm);
            assert!(layer || known(flaw.algorithm), "there is no {}", flaw.algorithm);
        }
    }
}
