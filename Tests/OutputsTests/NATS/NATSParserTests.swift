import EventLoops
import TestKit
import Testing

@testable import Outputs

@Suite("The parser of the NATS protocol")
struct NATSParserTests {
    private static let talk = Array(
        ("INFO {\"server_id\":\"a\",\"max_payload\":1048576} \r\n+OK\r\nPING\r\n"
            + "MSG inbox.1 1 5\r\nhello\r\nMSG inbox.2 1 reply.to 0\r\n\r\n"
            + "HMSG inbox.3 1 12 14\r\nNATS/1.0\r\n\r\nok\r\nHMSG inbox.4 9 r 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
            + "-ERR 'Authorization Violation'\r\npong\r\n-ERR  bare words\r\nMSG\tinbox.5\t1\t2\r\n\r\n\r\nPONG\n")
            .utf8
    )

    private static let meaning: [NATSOperation] = [
        .info(Array(" {\"server_id\":\"a\",\"max_payload\":1048576} ".utf8)), .ok, .ping,
        .message(subject: "inbox.1", headers: [], payload: Array("hello".utf8)),
        .message(subject: "inbox.2", headers: [], payload: []),
        .message(subject: "inbox.3", headers: Array("NATS/1.0\r\n\r\n".utf8), payload: Array("ok".utf8)),
        .message(subject: "inbox.4", headers: Array("NATS/1.0 503\r\n\r\n".utf8), payload: []),
        .error("Authorization Violation"), .pong, .error("bare words"),
        .message(subject: "inbox.5", headers: [], payload: [0x0D, 0x0A]), .pong,
    ]

    private func read(_ parser: inout NATSParser) throws(NATSProtocolError) -> [NATSOperation] {
        var found: [NATSOperation] = []
        while let operation = try parser.next() { found.append(operation) }
        return found
    }

    @Test("the result does not depend on how the bytes are divided")
    func cuts() throws {
        for cut in 0...NATSParserTests.talk.count {
            var parser = NATSParser()
            parser.append(NATSParserTests.talk[..<cut])
            var found = try read(&parser)
            parser.append(NATSParserTests.talk[cut...])
            found += try read(&parser)
            #expect(found == NATSParserTests.meaning, "cut at \(cut)")
            #expect(parser.keptBytes == 0)
        }
        var parser = NATSParser()
        var found: [NATSOperation] = []
        for byte in NATSParserTests.talk {
            parser.append([byte])
            found += try read(&parser)
        }
        #expect(found == NATSParserTests.meaning)
    }

    @Test(
        "an unknown operation or impossible length is an error, and nothing after it is parsed",
        arguments: [
            "\r\n", "HELLO\r\n", "HTTP/1.1 400 Bad Request\r\n", "MSG a 1\r\n", "MSG a 1 -1\r\n",
            "MSG a 1 1e3\r\n",
            "MSG a 1 99999999999999999999\r\n", "MSG a 1 9223372036854775807\r\n", "MSG a 1 65537\r\n",
            "MSG a 1 \r\n",
            "MSG a 1 2\r\nabc\r\n", "HMSG a 1 3 2\r\nabc\r\n", "HMSG a 1 2\r\n", "HMSG a 1 x 2\r\n",
            "HMSG a 1 99999999999999999999 2\r\n", "MSG a 1 r r 2\r\n", "\u{0}\r\n",
        ])
    func nonsense(text: String) {
        var parser = NATSParser()
        parser.append(Array(text.utf8))
        #expect(throws: NATSProtocolError.self) { try read(&parser) }
        parser.append(Array("PING\r\n".utf8))
        #expect(throws: NATSProtocolError.self) { try read(&parser) }
    }

    @Test("an endless line is given up at its limit: 4 KiB, 64 KiB for INFO")
    func endlessLines() throws {
        for (start, limit) in [("MSG ", NATSParser.longestLine), ("INFO ", NATSParser.longestInfo)] {
            var parser = NATSParser()
            parser.append(Array(start.utf8))
            var given = start.utf8.count
            var refused = false
            while !refused, given < 1 << 20 {
                parser.append([UInt8](repeating: UInt8(ascii: "x"), count: 1000))
                given += 1000
                do throws(NATSProtocolError) { _ = try parser.next() } catch { refused = true }
            }
            #expect(refused && given <= limit + 1000, "\(start): \(given)")
        }
    }

    @Test("fuzz: any bytes are parsed or refused, within the parser's limits")
    func fuzz() {
        let pieces = [
            "INFO {\"a\":1}\r\n", "MSG a 1 3\r\nabc\r\n", "HMSG a 1 4 8\r\nNATSabcd\r\n", "PING\r\n",
            "-ERR 'x'\r\n",
            " ",
            "\r\n", "\n", "9", "-", "\u{0}", "MSG ", "HMSG a 1 ", "65536", "INFO ", "é", "\t",
        ].map { Array($0.utf8) }
        for seed in Seeds.list(1...60) {
            var random = SplitMix64(seed: seed)
            var bytes: [UInt8] = []
            for _ in 0..<200 {
                bytes += pieces[Int.random(in: 0..<pieces.count, using: &random)]
                if Int.random(in: 0..<8, using: &random) == 0, !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(
                        in: 0...255, using: &random)
                }
            }
            func run(_ sizes: () -> Int) -> ([NATSOperation], String?) {
                var parser = NATSParser()
                var found: [NATSOperation] = []
                var rest = bytes[...]
                while !rest.isEmpty {
                    let piece = rest.prefix(max(1, sizes()))
                    rest = rest.dropFirst(piece.count)
                    parser.append(piece)
                    do throws(NATSProtocolError) {
                        while let operation = try parser.next() { found.append(operation) }
                    } catch {
                        return (found, error.message)
                    }
                    #expect(
                        parser.keptBytes <= NATSParser.longestInfo + NATSParser.largestPayload,
                        "\(Seeds.again(seed))")
                }
                return (found, nil)
            }
            let whole = run { bytes.count }
            let cut = run { Int.random(in: 1...40, using: &random) }
            #expect(whole.0 == cut.0 && whole.1 == cut.1, "\(Seeds.again(seed))")
        }
    }

    @Test("INFO: relevant fields are read, hostile ones are limited")
    func info() throws {
        func info(_ json: String) -> NATSInfo? { NATSInfo(Array(json.utf8)) }
        let good = try #require(
            info(
                #"{"max_payload":4096,"headers":true,"nonce":"abc","tls_required":true,"ldm":true,"connect_urls":["a:1","b:2"]}"#
            ))
        #expect(
            good.maxPayload == 4096 && good.hasHeaders && good.nonce == "abc" && good.requiresTLS
                && good.isLeaving)
        #expect(good.otherServers == ["a:1", "b:2"])
        #expect(info("{}")?.maxPayload == 1 << 20)
        #expect(info(#"{"max_payload":-1}"#)?.maxPayload == 1 << 20)
        #expect(info(#"{"max_payload":9223372036854775807}"#)?.maxPayload == NATSInfo.largestPayload)
        #expect(info(#"{"max_payload":"x","headers":1,"nonce":7,"connect_urls":{}}"#)?.hasHeaders == false)
        #expect(info("{\"nonce\":\"a\\nb\"}")?.nonce == nil)
        let many = (0..<1000).map { "\"host-\($0):4222\"" }.joined(separator: ",")
        #expect(info("{\"connect_urls\":[\(many)]}")?.otherServers.count == NATSInfo.mostServers)
        for bad in ["", "[]", "x", "{\"a\":", "\"{}\""] { #expect(info(bad) == nil, "\(bad)") }
    }

    @Test("addresses: valid hosts and ports are accepted, and no others")
    func addresses() throws {
        for (text, host, port) in [
            ("a.example.com:4222", "a.example.com", 4222), ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]:65535", "::1", 65535),
        ] {
            let address = try #require(NATSAddress(authority: text))
            #expect(address.host == host && address.port == port && address.authority == text)
        }
        for bad in [
            "", "a", ":4222", "a:", "a:0", "a:65536", "a:-1", "a b:1", "a:1:2", "[::1:4222", "[x]:1",
            "a\r\n:1",
            "a/b:1",
            "user@a:1", "-a:1", "a:+1", String(repeating: "a", count: 300) + ":1",
        ] { #expect(NATSAddress(authority: bad) == nil, "\(bad)") }
        #expect(try NATSAddress(url: "tls://A:1/").isTLS && NATSAddress(url: "nats://a").port == 4222)
        for bad in ["https://a", "nats://", "nats://u:p@a", "nats://a/x"] {
            #expect(throws: OutputError.self, "\(bad)") { try NATSAddress(url: bad) }
        }
    }
}
