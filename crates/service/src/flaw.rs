//! Planted mistakes: a test or a student switches one on, and the judge has to find it.

#[cfg(any(test, feature = "flaws"))]
use quorate_algorithms::flaw::Flaw;
#[cfg(all(feature = "flaws", not(test)))]
pub(crate) use quorate_algorithms::flaw::is_planted;

/// All mistakes of the catalogue.
#[cfg(any(test, feature = "flaws"))]
#[rustfmt::skip]
pub const FLAWS: &[Flaw] = &[
    Flaw { algorithm: "service/seat", name: "CountFromTheAnswer", answer: "A lease is counted from when the answer came, not from when the renewal was begun." },
    Flaw { algorithm: "service/seat", name: "DoomWithoutCompare", answer: "A life is doomed although it has renewed since its silence was measured." },
    Flaw { algorithm: "service/seat", name: "SilenceFromBeforeTheStart", answer: "A silence is counted from before whoever measures it was there." },
    Flaw { algorithm: "service/seat", name: "AnswerBeforeDisk", answer: "The register answers before what it answers is on its disk." },
    Flaw { algorithm: "service/seat", name: "RefusalTrustedAlone", answer: "One member's word that a place refuses connections is taken for a death." },
    Flaw { algorithm: "service/seat", name: "UnknownIsNo", answer: "Whoever does not hear whether its LEAVE was done takes it for refused, and goes on." },
    Flaw { algorithm: "service/seat", name: "MarkedLostIsOver", answer: "A member leaves at once, although what it began may go on until its lease has run out." },
    Flaw { algorithm: "service/seat", name: "RejoinIsEvidence", answer: "A process that asks for its next life is taken for dead in the last one, and asks at once." },
    Flaw { algorithm: "service/seat", name: "BarIsGround", answer: "Whoever is barred may be missing at once, although its lease has not run out." },
    Flaw { algorithm: "service/seat", name: "OneLeaseForAllLives", answer: "A lease that has run out is opened again by a later renewal, with what was granted under it." },
    Flaw { algorithm: "service/seat", name: "LeaseOfAnotherBeat", answer: "A silence is measured by the lease of now, not by that of the beat that it follows." },
    Flaw { algorithm: "service/seat", name: "AnyAnswer", answer: "The answer to a renewal is counted from the beginning of a later one." },
    Flaw { algorithm: "service/seat", name: "AdmitByName", answer: "A process that was started anew is given the life of the one before it, because the names are the same." },
    Flaw { algorithm: "service/seat", name: "FlushAndGoOn", answer: "A member says that it has stopped, and goes on granting." },
    Flaw { algorithm: "service/seat", name: "PassOverWhoOwes", answer: "The next view is decided although a member that stays has not said that it has stopped." },
    Flaw { algorithm: "service/seat", name: "PresideForTheSilent", answer: "If the most senior member is not heard, the next one presides in its place, without a change of view." },
    Flaw { algorithm: "service/seat", name: "NobodyComesIn", answer: "Who waits is let in only where nobody is seated." },
    Flaw { algorithm: "service/register", name: "DoomWithoutCompare", answer: "A life is doomed although it has renewed since its silence was measured." },
    Flaw { algorithm: "service/register", name: "BarIsGround", answer: "Whoever is barred may be missing at once, although nobody has measured its silence." },
    Flaw { algorithm: "service/founding", name: "MostPledgesWillDo", answer: "A cluster is founded when most seeds have pledged themselves, not all." },
    Flaw { algorithm: "service/founding", name: "PledgeAgain", answer: "A seed that has pledged itself does so again to whoever asks next." },
    Flaw { algorithm: "service/founding", name: "PledgeNotKept", answer: "A pledge is given before it is on the disk." },
    Flaw { algorithm: "service/founding", name: "PledgeDoesNotHold", answer: "A seed joins a cluster although it is pledged to another one, which may be founded." },
];

#[cfg(test)]
quorate_algorithms::plant_by_thread!();

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
    use std::string::String;

    use quorate_algorithms::Catalogued;

    use super::FLAWS;
    use crate::family::Service;

    /// Where the parts stand that the catalogue has.
    const PARTS: [&str; 4] = ["founding", "lease", "register", "seat"];

    /// Adds what stands in `flaw!(..)` in a file, or in the files below a folder.
    fn collect(path: &Path, found: &mut BTreeSet<String>) {
        if let Ok(entries) = fs::read_dir(path) {
            return entries.for_each(|entry| collect(&entry.unwrap().path(), found));
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let hooks = text.split("flaw!(").skip(1);
        found.extend(hooks.map(|rest| String::from(rest.split(')').next().unwrap())));
    }

    #[test]
    fn the_list_has_every_mistake_that_is_planted_and_no_other() {
        let mut planted = BTreeSet::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for part in PARTS {
            collect(&source.join(part), &mut planted);
            collect(&source.join(part).with_extension("rs"), &mut planted);
        }
        let listed: BTreeSet<String> = FLAWS.iter().map(|flaw| flaw.name.into()).collect();
        assert_eq!(listed, planted);
        for flaw in FLAWS {
            let known = Service::CATALOGUE.iter().any(|meta| meta.name == flaw.algorithm);
            assert!(known, "there is no {}", flaw.algorithm);
        }
    }
}
