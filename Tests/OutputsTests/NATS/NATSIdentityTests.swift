import EventLoops
import Model
import TestKit
import Testing

@testable import Outputs

@Suite("NATS: identities")
struct NATSIdentityTests {
    /// Made for these tests, with Python's base64 and cryptography.
    static let seed = "SUAIKLWZNA2CXYR4FJPG764HK4HTOSS76HQGWIPWJQEW2OASSR2IAXARTQ"
    static let publicName = "UBXZFQ52BNYDKSTBTMPUW7EMEDDXM7CZGKC3PO2WXOL3U3BN3PDAHC2H"

    @Test("a seed gives its public key, and signs like another library")
    func known() throws {
        let key = try NKey(seed: Secret(NATSIdentityTests.seed))
        #expect(key.publicName == NATSIdentityTests.publicName)
        #expect(
            key.signature(of: "nonce-of-the-server")
                == "fyCxgeWws1vNsyFXQtPeB9E63vdyDxpZLBKh9-QKu8AZ44cEZEsPlT_JgsdaWA20Y88oLFCyP2hrtf2xClRaBQ")
    }

    @Test("a seed with any character changed, removed or doubled is refused, and is in no message")
    func mistakes() {
        let seed = Array(NATSIdentityTests.seed)
        func refusal(_ text: String) -> String? {
            do throws(OutputError) {
                _ = try NKey(seed: Secret(text))
                return nil
            } catch {
                return error.message
            }
        }
        for index in seed.indices {
            var changed = seed
            changed[index] = seed[index] == "A" ? "B" : "A"
            let message = refusal(String(changed))
            #expect(message != nil, "\(index)")
            #expect(message?.contains(NATSIdentityTests.seed.suffix(20)) != true)
            #expect(
                refusal(String(seed[..<index])) != nil && refusal(String(seed + seed[..<index])) != nil
                    || index == 0)
        }
        // An account's seed is good and not ours; a public name is no seed.
        #expect(
            refusal("SAAIKLWZNA2CXYR4FJPG764HK4HTOSS76HQGWIPWJQEW2OASSR2IAXHCKA")?.contains("user's") == true)
        #expect(refusal(NATSIdentityTests.publicName)?.contains("is not a seed") == true)
        for bad in ["", "su", "0189", NATSIdentityTests.seed.lowercased(), " \(NATSIdentityTests.seed)"] {
            #expect(refusal(bad) != nil, "\(bad)")
        }
    }

    @Test("Base32 decodes what it encodes, and nothing else")
    func base32() {
        for seed in Seeds.list(1...20) {
            var random = SplitMix64(seed: seed)
            let bytes = (0..<Int.random(in: 0...70, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            #expect(Base32.decode(Base32.encode(bytes)) == bytes, "\(Seeds.again(seed))")
        }
        #expect(
            Base32.encode(Array("foobar".utf8)) == "MZXW6YTBOI"
                && Base32.decode("MZXW6YTBOI") == Array("foobar".utf8))
        for bad in ["A", "ABC", "MZ======", "mz", "M1", "MB"] { #expect(Base32.decode(bad) == nil, "\(bad)") }
    }

    @Test("a credentials file gives its JWT and its key, with any line ends and comments")
    func credentials() throws {
        let jwt = "eyJ0eXAiOiJKV1QifQ.eyJhIjoxfQ.c2ln-_"
        let file = """
            some words before
            -----BEGIN NATS USER JWT-----
            \(jwt)
            ------END NATS USER JWT------

            ************************* IMPORTANT *************************
            Keep this to yourself.

            -----BEGIN USER NKEY SEED-----
              \(NATSIdentityTests.seed)
            ------END USER NKEY SEED------

            *************************************************************
            """
        var settings = DestinationSettings()
        settings.nats.credentials.file = "agent.creds"
        for text in [file, file.replacing("\n", with: "\r\n")] {
            let identity = try NATSIdentity(NATSOptions(settings), Secret(text))
            let members = try #require(identity.members(nonce: "nonce-of-the-server"))
            #expect(members.map(\.0) == ["jwt", "sig"] && members[0].1 == jwt)
            #expect(identity.members(nonce: nil) == nil)
        }
        for bad in [
            "", jwt, file.replacing("------END USER NKEY SEED------", with: ""),
            file.replacing(jwt, with: ""),
            file.replacing(jwt, with: "\(jwt) \"}"), file.replacing(NATSIdentityTests.seed, with: "SUA"),
            String(file.prefix(file.count / 2)),
        ] {
            #expect(throws: OutputError.self) { try NATSIdentity(NATSOptions(settings), Secret(bad)) }
        }
    }

    @Test("no description shows a secret")
    func secrecy() throws {
        let secret = Secret(NATSIdentityTests.seed)
        var settings = DestinationSettings()
        settings.nats.nkey.inline = secret
        for identity in [
            try NATSIdentity(NATSOptions(settings), secret), .token(Secret("the-token")),
            .user("me", Secret("the-token")),
        ] {
            var shown = "\(identity) \(String(reflecting: identity))"
            dump(identity, to: &shown)
            #expect(!shown.contains("the-token") && !shown.contains(NATSIdentityTests.seed))
        }
    }
}
