import Testing

@testable import Delivery

@Suite("Waits in the log")
struct DeliveryNoteTests {
    @Test("a wait is written in milliseconds, from one second on in seconds, with tenths if there are any")
    func waits() {
        for (milliseconds, text) in [
            (0, "0ms"), (999, "999ms"), (1000, "1s"), (1099, "1s"), (1100, "1.1s"), (1950, "1.9s"),
            (41_000, "41s"),
        ] {
            #expect(Duration.milliseconds(milliseconds).brief == text)
        }
    }
}
