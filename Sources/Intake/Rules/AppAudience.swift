package import Containers

/// Apps that listen for calls of their functions. Called from the reader's loop.
package protocol AppAudience: AnyObject, Sendable {
    /// Gives a call to one client that listens for it; false without a client, or without
    /// one that has room.
    func offer(_ call: AppCall, of app: String) -> Bool

    /// The number of calls that were given to a client and did not reach it, since this was last asked.
    func takeLost() -> Int
}
