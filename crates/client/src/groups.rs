//! Groups, as a client follows them and sends to them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quorate_member::{Delivery, GroupError, Message, Order, View};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::client::{Inner, PATIENCE};
use crate::http::{Events, Method, Place, StatusCode, answer, bytes, call_with, escaped, exchange};

/// What has come and was not taken; what comes after it waits at the agent.
const WAITING: usize = 256;

/// A group that this process follows by way of an agent, which is in it. Dropped, it is not followed any
/// more.
///
/// What [`next`](Self::next) returns is one stream, as the agent is told it: views, which begin with the
/// one that there is, and between two views the messages of the first. It is that of one agent and never goes
/// on at another one, where something might have been missed: when the agent is gone, is excluded, or has
/// more to tell than is taken (4,096 things), the stream ends with [`GroupError::Excluded`]. Whoever does
/// not take what it is told holds up nobody.
#[derive(Debug)]
pub struct Group {
    sender: Sender,
    told: mpsc::Receiver<Delivery>,
    leaving: bool,
}

/// Sends to a group, from any task.
#[derive(Clone)]
pub struct Sender {
    inner: Arc<Inner>,
    place: Place,
    name: String,
    /// Why nothing is told any more.
    ended: watch::Receiver<Option<GroupError>>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("group", &self.name).field("place", &self.place).finish()
    }
}

/// Follows a group at the first agent that can.
pub(crate) async fn enter(inner: Arc<Inner>, name: String) -> Result<Group, GroupError> {
    if name.is_empty() {
        return Err(GroupError::TooLong);
    }
    let path = format!("/v1/groups/{}", escaped(&name));
    let (first, count) = (inner.turn.load(Ordering::Relaxed), inner.places.len());
    let mut why = GroupError::NotPrimary;
    for place in (first..first + count).map(|at| inner.places[at % count].clone()) {
        let asked = timeout(PATIENCE, exchange(&place, Method::GET, &path, None));
        let Ok(Ok(response)) = asked.await else { continue };
        if response.status().is_success() {
            return Ok(begin(inner, name, &place, Events::of(&place, response)));
        }
        if let Ok((status, said)) = answer(&place, response).await {
            why = refused(status, &said);
        }
        if why == GroupError::TooLong {
            break;
        }
    }
    Err(why)
}

/// Why an agent refused.
fn refused(status: StatusCode, said: &Value) -> GroupError {
    match (status, said["error"].as_str()) {
        (StatusCode::PAYLOAD_TOO_LARGE, _) => GroupError::TooLong,
        (_, Some("full")) => GroupError::Full,
        _ => GroupError::NotPrimary,
    }
}

fn begin(inner: Arc<Inner>, name: String, place: &Place, mut events: Events) -> Group {
    let (tell, told) = mpsc::channel(WAITING);
    let (end, ended) = watch::channel(None);
    inner.handle.spawn(async move {
        let passed_on = async {
            while let Ok(Some(line)) = events.next().await {
                let delivery = delivery(&line);
                if tell.send(delivery).await.is_err() {
                    break;
                }
            }
        };
        let why = tokio::select! {
            biased;
            () = tell.closed() => GroupError::Left,
            () = passed_on => GroupError::Excluded,
        };
        // In this order: what the stream ends with is known when it does.
        end.send_replace(Some(why));
        drop(tell);
    });
    let sender = Sender { inner, place: place.clone(), name, ended };
    Group { sender, told, leaving: false }
}

/// What an agent tells, as a line of JSON.
fn delivery(line: &Value) -> Delivery {
    let text = |key: &str| line[key].as_str().unwrap_or_default();
    if let Some(members) = line["members"].as_array() {
        let (epoch, number) = text("view").split_once(':').unwrap_or_default();
        let id = (epoch.parse().unwrap_or_default(), number.parse().unwrap_or_default());
        let members = members.iter().filter_map(Value::as_str).map(Into::into).collect();
        return Delivery::View(View { id, members });
    }
    let order = Order::ALL.into_iter().find(|order| order.name() == text("order"));
    let (own, bytes) = (line["own"] == true, bytes(&line["text"], &line["base64"]));
    Delivery::Message(Message::passed_on(text("from"), own, order.unwrap_or(Order::Fifo), bytes))
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.sender.name
    }

    /// What sends to it, from any task.
    #[must_use]
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// As [`Sender::send`].
    ///
    /// # Errors
    /// As there.
    pub async fn send(&self, message: &[u8], order: Order) -> Result<(), GroupError> {
        self.sender.send(message, order).await
    }

    /// The next thing that is told: a view or a message. An agent has no state to give.
    ///
    /// # Errors
    /// When there is nothing more: this process does not follow it any more, or the agent cannot go on.
    pub async fn next(&mut self) -> Result<Delivery, GroupError> {
        let told = self.told.recv().await;
        told.ok_or_else(|| self.ended())
    }

    /// The next thing, if it was told already.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&mut self) -> Result<Option<Delivery>, GroupError> {
        match self.told.try_recv() {
            Ok(told) => Ok(Some(told)),
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => Err(self.ended()),
        }
    }

    fn ended(&self) -> GroupError {
        if self.leaving { GroupError::Left } else { GroupError::Excluded }
    }

    /// Does not follow it any more: what has come already is told, then [`GroupError::Left`].
    pub fn retire(&mut self) {
        self.leaving = true;
        self.told.close();
    }
}

impl Sender {
    /// Sends a message by the agent, as soon as there is room for it. Returns when it is on its way, which is
    /// before anybody delivers it: whoever sends the next one then sends it after this one. Others know
    /// it as sent by the agent.
    ///
    /// # Errors
    /// If the message is too long, or the group is not followed any more. After [`GroupError::Excluded`]
    /// it may have been sent or not.
    pub async fn send(&self, message: &[u8], order: Order) -> Result<(), GroupError> {
        if let Some(why) = &*self.ended.borrow() {
            return Err(why.clone());
        }
        let (place, message) = (self.place.clone(), message.to_vec());
        let path = format!("/v1/groups/{}?order={}", escaped(&self.name), order.name());
        let sent = async move { call_with(&place, Method::POST, &path, message).await };
        let mut ended = self.ended.clone();
        tokio::select! {
            sent = self.inner.handle.spawn(sent) => match sent {
                Ok(Ok((status, _))) if status.is_success() => Ok(()),
                Ok(Ok((status, said))) => Err(refused(status, &said)),
                _ => Err(GroupError::Excluded),
            },
            _ = ended.wait_for(Option::is_some) => Err(GroupError::Excluded),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_an_agent_are_read_as_they_are_meant() {
        let Delivery::View(view) = delivery(&json!({ "view": "3:1", "members": ["a", "b"] }))
        else {
            panic!("a view");
        };
        assert_eq!((view.id, view.members), ((3, 1), vec!["a".into(), "b".into()]));
        let line = json!({ "from": "b", "order": "uniform", "text": "?", "base64": "/w==" });
        let Delivery::Message(message) = delivery(&line) else { panic!("a message") };
        assert_eq!((message.sender(), message.order()), ("b", Order::Uniform));
        assert_eq!((message.bytes(), message.is_own()), (&[0xff][..], false));
    }
}
