import EventLoops
import Model
import Testing

@testable import Outputs

/// Two events as the agent stores them.
let sampleLines = """
    {"name":"Video clicked","timestamp":"2026-11-20T10:00:00.123Z","properties":{"Category":"Music","Count":3,"Ratio":0.5,"Paid":true,"At":"2026-11-20T09:00:00Z","Tags":[1,"two"],"None":null},"app":"web","session_id":"0192f3a4-0000-7abc-8def-0123456789ab","country":"IT","device":{"sdk_name":"spoolship","sdk_version":"0.1.0","os_name":"Debian GNU/Linux","os_version":"12","install_id":"11111111-2222-4333-8444-555555555555","time_zone_offset":60},"observed_at":"2026-11-20T10:00:01.000Z","id":"0192f3a4-0000-7abc-8def-000000000001"}
    {"name":"say \\"hi\\"\\\\","observed_at":"2026-11-20T10:00:02.000Z"}

    """

func header(events: Int) -> BatchHeader {
    let now = Timestamp(milliseconds: 1_795_168_800_000)
    return BatchHeader(
        id: BatchID(high: 0x0193_0000_0000_7000, low: 1), destination: "main", priority: .normal,
        events: events,
        bytes: sampleLines.utf8.count, acceptedAt: now, firstEventTime: now)
}

/// The sample as a format writes it.
func encoded(_ encoder: any BatchEncoder, _ lines: String = sampleLines) throws -> String {
    let count = lines.utf8.count { $0 == UInt8(ascii: "\n") }
    return String(decoding: try encoder.encode(Array(lines.utf8), of: header(events: count)), as: UTF8.self)
}

/// What an answer means in a format, by its status's table where the format says nothing.
func outcome(_ encoder: any BatchEncoder, events: Int, status: Int = 200, _ body: String) -> Outcome {
    AnswerReader(table: AnswerTable(), encoder: encoder).outcome(
        of: HTTPAnswer(status: status, body: Array(body.utf8)), for: header(events: events),
        wireBytes: 100, now: Timestamp(milliseconds: 0)
    ) { () throws(OutputError) in Array(sampleLines.utf8) }
}
