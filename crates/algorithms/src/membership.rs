//! Membership by views: a part that agrees, again and again, on who belongs to a group.
//!
//! # In one sentence
//! The most senior member that works stops everybody, collects what they know, has the next view
//! decided by an authority, and announces it.
//!
//! # How it works
//! A *view* is a numbered list of members by seniority. Inside a view nobody fails by definition;
//! who fails, leaves or wants to join changes the view, in four steps:
//!
//! 1. The coordinator sends FLUSH to all members that it does not take for dead. Each stops
//!    sending in this view, for good, and answers FLUSH-OK with what it has to report.
//! 2. With all answers in, the owner of this part exchanges what some members miss (what that is, is
//!    its business: messages, or who holds a lock), until all who answered have the same.
//! 3. The coordinator proposes the next view to the [`Authority`], together with what was agreed in
//!    step 2. The authority decides for one proposal per view, whoever made it.
//! 4. The coordinator announces the decision with VIEW. Newcomers get the state with it, from the
//!    most senior old member.
//!
//! If anybody dies on the way, the coordinator begins again without it; if the coordinator dies,
//! the next in rank begins. A view that was decided already then comes back from the authority.
//!
//! # Why it is right
//! Who answered a FLUSH adds nothing to what it has delivered until a view is decided. So whatever
//! is decided contains all that its members had delivered, and all of them have it: they answered
//! in that change and took part in its exchange. Views follow each other one by one: a FLUSH shows
//! the view that it starts from, and who has not seen that one yet installs it first. A node that
//! comes up again, or was left out by mistake, is a new member, told from the old one by its
//! [`Life`].
//!
//! # What it needs
//! Reliable links that keep the order, and the word of a failure detector. A wrong word costs a
//! member its seat, never the agreement.
//!
//! # Known limits
//! Who was left out by mistake is told so by the coordinator. If that changes before, and its
//! successor knew the node to be alive before it led, nobody tells it: it waits in the old view. One
//! of 400,000 random runs of virtual synchrony shows it (seed 377509).

mod authority;
mod majority;
mod register;
mod words;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::{Ctx, Liveness, NodeId, NodeSet, Protocol, Refusal, ViewId};

pub use authority::{Authority, AuthorityMessage, Electorate, Post, Proposal, Seat, SeatMsg};
pub use majority::{Ballot, Majority, MajorityMsg, Step};
pub use register::{Register, RegisterMsg};
pub use words::{Charter, Command, Content, Event, Life, Member, Msg, Tenant};

/// The membership part at one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Membership<T: Tenant> {
    me: NodeId,
    life: Life,
    standing: Standing,
    /// The last view that I know of: one that I am a member of, or the one that left me out.
    view: Charter<T::Agreed>,
    /// Everybody who may be a member.
    everybody: NodeSet,
    /// Who is taken for dead.
    down: NodeSet,
    /// Who wants to join.
    joiners: BTreeMap<NodeId, Life>,
    /// Lives that are over, the last one of each node: by a view without it, or by its own word.
    over: BTreeMap<NodeId, Life>,
    /// Who wants to leave, in which life: also members of views that have not come here yet.
    leavers: BTreeMap<NodeId, Life>,
    /// I have answered a FLUSH, or sent one, in this view.
    stopped: bool,
    /// How many changes I have coordinated in this view.
    rounds: u32,
    /// The change that I coordinate.
    lead: Option<Lead<T>>,
    authority: T::Authority,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    /// No member, and content with that.
    Outside,
    /// No member, and wants to be one.
    Joining,
    /// A member on paper, which waits for the state.
    Waiting,
    /// A member.
    Member,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lead<T: Tenant> {
    round: u32,
    /// Who has not answered yet.
    silent: NodeSet,
    /// Who has, and what.
    answers: BTreeMap<NodeId, Option<T::Report>>,
    /// Has the authority been asked?
    proposed: bool,
}

impl<T: Tenant> Membership<T> {
    /// The part at a node. A node that comes up again is no member, whatever it was before.
    pub fn new(
        me: NodeId,
        boot: quorate_core::Life,
        everybody: NodeSet,
        founders: &NodeSet,
        authority: T::Authority,
    ) -> Self {
        let standing = match (boot.is_first(), founders.contains(me)) {
            (true, true) => Standing::Member,
            (true, false) => Standing::Outside,
            _ => Standing::Joining,
        };
        Self {
            me,
            life: Life { boot, stay: 0 },
            standing,
            view: Charter::founding(founders),
            everybody,
            down: NodeSet::new(),
            joiners: BTreeMap::new(),
            over: BTreeMap::new(),
            leavers: BTreeMap::new(),
            stopped: false,
            rounds: 0,
            lead: None,
            authority,
        }
    }

    /// The last view that this node knows of.
    pub const fn view(&self) -> &Charter<T::Agreed> {
        &self.view
    }

    /// Is this node a member, with the state?
    pub fn is_member(&self) -> bool {
        self.standing == Standing::Member
    }

    /// May members send in this view? Not from a FLUSH to the next view.
    pub fn is_open(&self) -> bool {
        self.is_member() && !self.stopped
    }

    /// Is this node on its way out?
    pub fn is_leaving(&self) -> bool {
        self.leaves(&Member { node: self.me, life: self.life })
    }

    fn leaves(&self, member: &Member) -> bool {
        self.leavers.get(&member.node) == Some(&member.life)
    }

    /// Is this member to be asked and counted on? One whose node came up again is dead.
    fn works(&self, member: &Member) -> bool {
        let reborn = self.joiners.get(&member.node).is_some_and(|life| *life > member.life);
        !self.down.contains(member.node) && !reborn && !self.is_over(*member)
    }

    fn is_over(&self, member: Member) -> bool {
        self.over.get(&member.node).is_some_and(|life| *life >= member.life)
    }

    fn end(&mut self, Member { node, life }: Member) {
        let last = self.over.entry(node).or_insert(life);
        *last = (*last).max(life);
        self.joiners.retain(|joiner, wish| *joiner != node || *wish > life);
        self.leavers.retain(|leaver, wish| *leaver != node || *wish > life);
    }

    /// The most senior member that works; one that wants to leave only if all do.
    fn coordinator(&self) -> Option<NodeId> {
        let working = || self.view.members.iter().filter(|member| self.works(member));
        let staying = working().find(|member| !self.leaves(member));
        staying.or_else(|| working().next()).map(|member| member.node)
    }

    /// Who can join now.
    fn newcomers(&self) -> impl Iterator<Item = Member> {
        let joiners = self.joiners.iter().map(|(&node, &life)| Member { node, life });
        joiners.filter(|member| {
            !self.down.contains(member.node) && !self.view.members.contains(member)
        })
    }

    fn change_is_due(&self) -> bool {
        let out = |member: &Member| !self.works(member) || self.leaves(member);
        self.view.members.iter().any(out) || self.newcomers().next().is_some()
    }

    /// Begins a change, if one is due and it is mine to do.
    fn consider(&mut self, cx: &mut Ctx<'_, Self>) {
        let mine = self.is_member() && self.coordinator() == Some(self.me);
        if mine && self.lead.is_none() && self.change_is_due() {
            self.lead(cx);
        }
    }

    /// Begins a change, or begins it anew.
    fn lead(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("lead the change", &[("of view", self.view.id.0), ("round", self.rounds.into())]);
        self.stopped = true;
        let works = |member: &&Member| member.node != self.me && self.works(member);
        let silent = self.view.members.iter().filter(works).map(|member| member.node).collect();
        let (round, answers) = (self.rounds, BTreeMap::new());
        self.rounds += 1;
        self.lead = Some(Lead { round, silent, answers, proposed: false });
        cx.emit(Event::Lead);
    }

    /// The owner has stopped and has this to tell with the question.
    pub fn ask(&mut self, cx: &mut Ctx<'_, Self>, ask: T::Ask) {
        let Some(Lead { round, silent, .. }) = &self.lead else { return };
        let (round, silent) = (*round, silent.clone());
        if !silent.is_empty() {
            cx.multicast(silent, Msg::Flush { round, view: self.view.clone(), ask });
        }
        self.gather(cx);
    }

    fn on_flush(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        round: u32,
        view: Charter<T::Agreed>,
        ask: T::Ask,
    ) {
        self.hear_of(cx, &view, None);
        if view.id < self.view.id {
            cx.trace("show a later view", &[("to", from.number().into())]);
            cx.send(from, Msg::View { view: self.view.clone(), state: None });
        } else if view.id != self.view.id || !self.has_seat(&view) {
            cx.trace("foreign", &[("from", from.number().into())]);
            self.disown(cx, &view);
        } else if self.standing == Standing::Waiting {
            cx.trace("answer without state", &[("to", from.number().into())]);
            // From now on the state of this view comes too late.
            self.stopped = true;
            let joiners = self.known_joiners();
            cx.send(from, Msg::FlushOk { view: view.id, round, report: None, joiners });
        } else {
            self.stopped = true;
            cx.emit(Event::Stop { coordinator: from, round, ask });
        }
    }

    /// Does a view count on this node as it is now?
    fn has_seat(&self, view: &Charter<T::Agreed>) -> bool {
        self.standing != Standing::Outside && view.has(self.me, self.life)
    }

    /// A view counts on a life of this node that is over: says so.
    fn disown(&self, cx: &mut Ctx<'_, Self>, view: &Charter<T::Agreed>) {
        let mut listed = view.members.iter().filter(|member| member.node == self.me);
        let Some(Member { life, .. }) = listed.next().filter(|_| !self.has_seat(view)) else {
            return;
        };
        cx.trace("disown", &[("view", view.id.0)]);
        let others = view.others(self.me);
        if !others.is_empty() {
            cx.multicast(others, Msg::Gone(*life));
        }
    }

    fn known_joiners(&self) -> Vec<Member> {
        self.newcomers().collect()
    }

    /// The owner has stopped and reports this.
    pub fn report(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        coordinator: NodeId,
        round: u32,
        report: T::Report,
    ) {
        cx.trace("stop and report", &[("to", coordinator.number().into())]);
        let joiners = self.known_joiners();
        let view = self.view.id;
        cx.send(coordinator, Msg::FlushOk { view, round, report: Some(report), joiners });
    }

    /// Others know of wishes to join that have not come here yet.
    fn pass_over_reborn(&mut self, cx: &mut Ctx<'_, Self>, joiners: Vec<Member>) {
        for joiner in joiners {
            if self.note_joiner(joiner) {
                self.without(cx, joiner.node);
            }
        }
    }

    fn on_flush_ok(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        answered: (ViewId, u32),
        report: Option<T::Report>,
    ) {
        let here = self.view.id;
        let lead = self.lead.as_mut().filter(|lead| (here, lead.round) == answered);
        match lead.filter(|lead| lead.silent.contains(from)) {
            Some(lead) => {
                lead.silent.remove(from);
                lead.answers.insert(from, report);
                self.gather(cx);
            }
            None => cx.trace("stale", &[("from", from.number().into())]),
        }
    }

    /// With all answers in, the owner takes over.
    fn gather(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(lead) = self.lead.as_ref().filter(|lead| lead.silent.is_empty()) else { return };
        let reports = lead.answers.iter();
        let reports = reports.filter_map(|(node, report)| Some((*node, report.clone()?)));
        cx.emit(Event::Gathered { round: lead.round, reports: reports.collect() });
    }

    /// All who answered have the same, and agree on this: what view is to follow?
    pub fn conclude(&mut self, cx: &mut Ctx<'_, Self>, round: u32, agreed: T::Agreed) {
        let Some(lead) = &mut self.lead else { return };
        if lead.round != round || lead.proposed || !lead.silent.is_empty() {
            return;
        }
        lead.proposed = true;
        let next = self.next_view(agreed);
        cx.trace("propose", &[("view", next.id.0), ("members", next.members.len() as u64)]);
        let reach = self.asked();
        let mut posted = Vec::new();
        let electorate = Electorate { me: self.me, members: &self.view.members };
        let decided = self.authority.propose(electorate, Proposal { next, reach }, &mut posted);
        post(cx, posted);
        self.decided(cx, decided);
    }

    /// Who took part in the change that I coordinate, but me.
    fn asked(&self) -> NodeSet {
        self.lead.iter().flat_map(|lead| lead.answers.keys().copied()).collect()
    }

    /// The view that I would have follow: who has the state by seniority, then newcomers.
    fn next_view(&self, agreed: T::Agreed) -> Charter<T::Agreed> {
        let answers = self.lead.as_ref().map(|lead| &lead.answers);
        let answer = |node| answers.and_then(|answers| answers.get(&node));
        let stays = |member: &&Member| !self.leaves(member);
        let old = self.view.members.iter().filter(stays);
        let stateful = |member: &&Member| {
            member.node == self.me || matches!(answer(member.node), Some(Some(_)))
        };
        let mut members: Vec<Member> = old.clone().filter(stateful).copied().collect();
        let waiting = old.filter(|member| matches!(answer(member.node), Some(None))).copied();
        let newcomers: Vec<Member> = waiting.chain(self.newcomers()).collect();
        let fresh = newcomers.iter().map(|member| member.node).collect();
        let departed = |member: &&Member| {
            let asked = member.node == self.me || answer(member.node).is_some();
            asked && self.leaves(member)
        };
        let departed =
            self.view.members.iter().filter(departed).map(|member| member.node).collect();
        members.extend(newcomers);
        Charter { id: ViewId(self.view.id.0 + 1), members, fresh, departed, agreed: Some(agreed) }
    }

    /// The authority has decided: announce it, whoever had proposed it.
    fn decided(&mut self, cx: &mut Ctx<'_, Self>, decided: Option<Charter<T::Agreed>>) {
        let Some(view) = decided.filter(|view| view.id > self.view.id) else { return };
        if !view.is_plausible(&self.everybody) {
            return cx.trace("stray number", &[("view", view.id.0)]);
        }
        self.announce(cx, &view);
        self.learn(cx, &view, None);
    }

    fn announce(&self, cx: &mut Ctx<'_, Self>, view: &Charter<T::Agreed>) {
        let before = self.view.others(self.me);
        let known = |node: &NodeId| !view.fresh.contains(*node) && !self.down.contains(*node);
        let mut audience: NodeSet = before.iter().filter(known).collect();
        audience.extend(view.others(self.me).iter().filter(|node| !view.fresh.contains(*node)));
        cx.trace("announce", &[("view", view.id.0)]);
        if !audience.is_empty() {
            cx.multicast(audience, Msg::View { view: view.clone(), state: None });
        }
    }

    /// Somebody else shows a view. Whoever coordinates the change to it announces it: it may never
    /// hear of the decision itself.
    fn hear_of(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<T::Agreed>,
        state: Option<T::State>,
    ) {
        if self.lead.is_some() && view.id > self.view.id {
            self.announce(cx, view);
        }
        self.learn(cx, view, state);
    }

    /// Takes note of a view that was decided.
    fn learn(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<T::Agreed>,
        state: Option<T::State>,
    ) {
        let mine = view.has(self.me, self.life);
        let fresh = view.fresh.contains(self.me);
        let waiting = self.standing == Standing::Waiting && !self.stopped;
        let again = waiting && view.id == self.view.id;
        if view.id <= self.view.id && !again {
            return;
        }
        if self.standing == Standing::Member && mine && fresh {
            // Left out by a view that has not come here, and let in again by an old wish to join.
            cx.trace("return", &[("view", view.id.0)]);
            self.standing = Standing::Joining;
            cx.emit(Event::Excluded);
        }
        match self.standing {
            Standing::Outside => {}
            _ if mine && fresh && state.is_none() => {
                cx.trace("wait for the state", &[("view", view.id.0)]);
                self.standing = Standing::Waiting;
                self.move_to(view);
            }
            Standing::Joining | Standing::Waiting if mine && fresh => self.install(cx, view, state),
            Standing::Member if mine && view.id.0 == self.view.id.0 + 1 => {
                self.install(cx, view, None);
            }
            Standing::Member if view.departed.contains(self.me) => self.leave(cx, view),
            Standing::Joining => {}
            Standing::Member | Standing::Waiting => self.drop_out(cx, Some(view)),
        }
    }

    fn move_to(&mut self, view: &Charter<T::Agreed>) {
        let before = core::mem::replace(&mut self.view, view.clone());
        for member in before.members.into_iter().filter(|member| !view.members.contains(member)) {
            self.end(member);
        }
        (self.stopped, self.rounds, self.lead) = (false, 0, None);
        self.joiners.retain(|node, life| {
            let seat = view.members.iter().find(|member| member.node == *node);
            seat.is_none_or(|member| member.life < *life)
        });
    }

    fn install(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<T::Agreed>,
        state: Option<T::State>,
    ) {
        cx.trace("install", &[("view", view.id.0), ("members", view.members.len() as u64)]);
        self.standing = Standing::Member;
        self.move_to(view);
        let mut settled = view.members.iter().filter(|member| !view.fresh.contains(member.node));
        let first = settled.next().is_some_and(|member| member.node == self.me);
        let welcome = first && !view.fresh.is_empty();
        cx.emit(Event::Install { view: view.clone(), state, welcome });
    }

    /// The owner has installed the view, and this is its state for newcomers.
    pub fn welcome(&mut self, cx: &mut Ctx<'_, Self>, state: T::State) {
        let mut fresh = self.view.fresh.clone();
        fresh.remove(self.me);
        cx.trace("tell newcomers the state", &[("view", self.view.id.0)]);
        cx.multicast(fresh, Msg::View { view: self.view.clone(), state: Some(state) });
    }

    /// The owner has settled in the view: what has come up meanwhile?
    pub fn settle(&mut self, cx: &mut Ctx<'_, Self>) {
        self.consider(cx);
        let coordinator = self.coordinator().filter(|&node| node != self.me);
        let Some(coordinator) = coordinator.filter(|_| self.is_open()) else { return };
        for joiner in self.known_joiners() {
            cx.trace("pass on a wish to join", &[("of", joiner.node.number().into())]);
            cx.send(coordinator, Msg::Join(joiner));
        }
    }

    fn leave(&mut self, cx: &mut Ctx<'_, Self>, view: &Charter<T::Agreed>) {
        cx.trace("leave", &[("view", self.view.id.0)]);
        self.standing = Standing::Outside;
        self.life.stay += 1;
        self.move_to(view);
        cx.emit(Event::Left(Some(view.clone())));
    }

    /// The others go on without this node: it starts over as a new member.
    fn drop_out(&mut self, cx: &mut Ctx<'_, Self>, view: Option<&Charter<T::Agreed>>) {
        let told = self.standing == Standing::Member;
        let leaving = self.is_leaving();
        self.leavers.remove(&self.me);
        (self.stopped, self.lead) = (false, None);
        self.life.stay += 1;
        if let Some(view) = view {
            self.move_to(view);
        }
        if leaving {
            cx.trace("leave without a farewell", &[("view", self.view.id.0)]);
            self.standing = Standing::Outside;
            cx.emit(Event::Left(None));
        } else {
            cx.trace("start over", &[("view", self.view.id.0)]);
            self.standing = Standing::Joining;
            if told {
                cx.emit(Event::Excluded);
            }
            self.ask_to_join(cx);
        }
    }

    fn ask_to_join(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("ask to join", &[("stay", self.life.stay.into())]);
        let mut others = self.everybody.clone();
        others.remove(self.me);
        cx.multicast(others, Msg::Join(Member { node: self.me, life: self.life }));
    }

    fn ask_to_leave(&self, cx: &mut Ctx<'_, Self>) {
        cx.trace("ask to leave", &[("view", self.view.id.0)]);
        let others = self.view.others(self.me);
        let others: NodeSet = others.iter().filter(|node| !self.down.contains(*node)).collect();
        if !others.is_empty() {
            cx.multicast(others, Msg::Leave(self.life));
        }
    }

    /// Notes who wants to join. Says whether that is news.
    fn note_joiner(&mut self, joiner: Member) -> bool {
        let Member { node, life } = joiner;
        let seat = self.view.members.iter().find(|member| member.node == node);
        let old = seat.is_some_and(|member| member.life >= life);
        let known = self.joiners.get(&node).is_some_and(|known| *known >= life);
        let old = old || self.is_over(joiner);
        if old || known || node == self.me || !self.everybody.contains(node) {
            return false;
        }
        self.joiners.insert(node, life);
        true
    }

    fn on_join(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, joiner: Member) {
        let news = self.note_joiner(joiner);
        let alive = from == joiner.node && self.down.remove(from);
        if news {
            cx.trace("note a wish to join", &[("of", joiner.node.number().into())]);
            self.without(cx, joiner.node);
        } else if alive {
            self.consider(cx);
        } else {
            cx.trace("known already", &[("of", joiner.node.number().into())]);
        }
    }

    /// A member that took part in a change is gone: begin again without it, or begin.
    fn without(&mut self, cx: &mut Ctx<'_, Self>, gone: NodeId) {
        let counted_on =
            |lead: &Lead<T>| lead.silent.contains(gone) || lead.answers.contains_key(&gone);
        if self.lead.as_ref().is_some_and(counted_on) {
            self.lead(cx);
        } else {
            self.consider(cx);
        }
    }

    /// Nobody is left who could tell this node the state: it starts over.
    fn give_up_waiting(&mut self, cx: &mut Ctx<'_, Self>) {
        let Self { view, down, .. } = self;
        let mut settled = view.members.iter().filter(|member| !view.fresh.contains(member.node));
        if self.standing == Standing::Waiting && settled.all(|member| down.contains(member.node)) {
            self.drop_out(cx, None);
        }
    }
}

fn post<T: Tenant>(cx: &mut Ctx<'_, Membership<T>>, posted: Vec<Post<T::Vote>>) {
    for (to, msg) in posted {
        cx.send(to, Msg::Authority(msg));
    }
}

impl<T: Tenant> Protocol for Membership<T> {
    type Msg = Msg<T>;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event<T>;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.standing == Standing::Joining {
            self.ask_to_join(cx);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.standing) {
            (Command::Join, Standing::Outside) => {
                self.standing = Standing::Joining;
                self.ask_to_join(cx);
                Ok(())
            }
            (Command::Leave, Standing::Member) if !self.is_leaving() => {
                self.leavers.insert(self.me, self.life);
                self.ask_to_leave(cx);
                self.consider(cx);
                Ok(())
            }
            (Command::Join, _) => Err(Refusal::Busy),
            (Command::Leave, _) => Err(Refusal::NotMember),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg<T>) {
        match msg {
            Msg::Join(joiner) => self.on_join(cx, from, joiner),
            Msg::Leave(life) if self.is_over(Member { node: from, life }) => {
                cx.trace("show that it is out", &[("to", from.number().into())]);
                cx.send(from, Msg::View { view: self.view.clone(), state: None });
            }
            Msg::Leave(life) => {
                cx.trace("note a wish to leave", &[("of", from.number().into())]);
                self.leavers.insert(from, life);
                self.consider(cx);
            }
            Msg::Flush { view, .. } | Msg::View { view, .. }
                if !view.is_plausible(&self.everybody) =>
            {
                cx.trace("stray number", &[("view", view.id.0)]);
            }
            Msg::Flush { round, view, ask } => self.on_flush(cx, from, round, view, ask),
            Msg::FlushOk { view, round, report, joiners } => {
                self.pass_over_reborn(cx, joiners);
                self.on_flush_ok(cx, from, (view, round), report);
            }
            Msg::View { view, state } => {
                self.hear_of(cx, &view, state);
                self.disown(cx, &view);
            }
            Msg::Gone(life) => {
                cx.trace("note a life that is over", &[("of", from.number().into())]);
                self.end(Member { node: from, life });
                self.without(cx, from);
            }
            Msg::Authority(msg) => {
                let mut posted = Vec::new();
                let seated =
                    self.standing == Standing::Member || self.standing == Standing::Waiting;
                let view = Some(&self.view).filter(|_| seated);
                let decided = self.authority.on_message(self.me, view, from, msg, &mut posted);
                post(cx, posted);
                self.decided(cx, decided);
            }
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Down => {
                cx.trace("take for dead", &[("peer", peer.number().into())]);
                self.down.insert(peer);
                self.give_up_waiting(cx);
                // Whoever is dead may have been about to say that this node is out.
                if self.is_leaving() {
                    self.ask_to_leave(cx);
                }
                self.without(cx, peer);
            }
            Liveness::Up => {
                cx.trace("take for alive", &[("peer", peer.number().into())]);
                self.down.remove(peer);
                let outside = self.view.rank(peer).is_none();
                if outside && self.is_member() && self.coordinator() == Some(self.me) {
                    cx.send(peer, Msg::View { view: self.view.clone(), state: None });
                }
                // Whoever returns may be what the authority lacked for a decision.
                if !outside && self.lead.is_some() {
                    self.lead(cx);
                } else {
                    self.consider(cx);
                }
            }
        }
    }
}
