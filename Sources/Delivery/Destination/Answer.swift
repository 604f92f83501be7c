internal import EventLoops
internal import Model

/// An answer of the destination: to which attempt, and when.
struct Answer {
    let number: UInt64
    let isProbe: Bool
    /// App of each event in the batch's order; empty if the apps were not looked up.
    let apps: [String]
    let now: Moment

    /// The app of the event at a position; nil if unknown.
    func app(of index: Int) -> String? { apps.isEmpty || apps[index].isEmpty ? nil : apps[index] }

    /// The app of all events; nil if there are several, or if it is unknown.
    var app: String? { Set(apps).count == 1 ? app(of: 0) : nil }
}
