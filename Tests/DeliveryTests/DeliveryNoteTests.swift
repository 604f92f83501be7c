import Testing

@testable import Delivery

@Suite("What the log says of waits")
struct DeliveryNoteTests {
    @Test(
        "a wait is said in milliseconds, in seconds from one on, and in tenths of them where there are some")
    func waits() {
        for (milliseconds, text) in [
            (0, "0ms"), (999, "999ms"), (1000, "1s"), (1099, "1s"), (1100, "1.1s"), (1950, "1.9s"),
            (41_000, "41s"),
        ] {
            #expect(Duration.milliseconds(milliseconds).brief == text)
        }
    }
}
