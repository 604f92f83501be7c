/// A country by its two capital letters.
///
/// Source: ISO 3166-1 alpha-2, the 249 officially assigned codes.
public struct CountryCode: Sendable, Hashable, CustomStringConvertible {
    let first: UInt8
    let second: UInt8

    /// The country of two letters in upper or lower case; nil if no country has this code.
    public init?(_ text: some StringProtocol) {
        let letters = Array(text.utf8)
        guard letters.count == 2 else { return nil }
        self.init(letters[0], letters[1])
    }

    /// The country of two letters. Clearing bit 5 makes small ASCII letters capitals; any other byte then
    /// fails the check of the row or of the bit.
    @inline(__always)
    init?(_ first: UInt8, _ second: UInt8) {
        let row = (first & 0xDF) &- UInt8(ascii: "A")
        let column = (second & 0xDF) &- UInt8(ascii: "A")
        guard row < 26, CountryCode.assigned[Int(row)] >> UInt32(column) & 1 == 1 else { return nil }
        self.first = first & 0xDF
        self.second = second & 0xDF
    }

    /// The two letters, in capitals.
    public var description: String { String(decoding: [first, second], as: UTF8.self) }

    /// Assigned codes: an entry for each first letter, with a bit for each second letter (bit 0 is A). A
    /// table, because the country of each event is looked up.
    private static let assigned: [UInt32] = {
        let codes = """
            AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO
            BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ
            DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP
            GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG
            KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML
            MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE
            PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL
            SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM
            US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
            """
        var rows = [UInt32](repeating: 0, count: 26)
        for code in codes.split(whereSeparator: \.isWhitespace).map({ Array($0.utf8) }) {
            rows[Int(code[0] - UInt8(ascii: "A"))] |= 1 << UInt32(code[1] - UInt8(ascii: "A"))
        }
        return rows
    }()
}
