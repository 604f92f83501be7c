internal import EventLoops

/// Patience with a destination that has acknowledged lately and now refuses the request itself: 401, 403,
/// 404, or a sign-in page.
///
/// A restarting ingress, one bad backend of two, or a captive portal answers like that for a moment. The
/// destination is tried again after 10 s, 30 s, and then every minute. It counts as held only after five
/// minutes without any acknowledgement.
struct Patience: Sendable, Equatable {
    /// Longest time since the last acknowledgement with which a refusal is still taken as temporary.
    static let trusted = Duration.seconds(600)
    /// How long nothing may be acknowledged before the destination counts as held.
    private static let longest = Duration.seconds(300)
    /// Waits after the first, second and each later refusal.
    private static let waits: [Duration] = [.seconds(10), .seconds(30), .seconds(60)]

    /// The first refusal.
    private let began: BootInstant
    /// Refusals so far.
    private(set) var refusals = 0

    init(at now: BootInstant) { began = now }

    /// When the destination is tried again after one more refusal; nil if it counts as held.
    mutating func refuse(at now: BootInstant) -> BootInstant? {
        let end = began + Patience.longest
        guard now < end else { return nil }
        let wait = Patience.waits[min(refusals, Patience.waits.count - 1)]
        refusals += 1
        return min(now + wait, end)
    }
}
