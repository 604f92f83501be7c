internal import Model

extension Outcome {
    /// What happened to a batch whose messages were judged one by one: all of it, or the events that go again.
    ///
    /// Where nothing of it is stored, it shares the fate of the first.
    init(of messages: [Outcome]) {
        let open = messages.enumerated().filter { $0.element != .acknowledged }
        if let first = open.first {
            self = open.count < messages.count ? .partial(rejected: [], retry: open.map(\.offset)) : first.element
        } else {
            self = .acknowledged
        }
    }
}
