/// A country by its two letters, in capitals.
///
/// Source: ISO 3166-1 alpha-2, the 249 officially assigned codes.
public struct CountryCode: Sendable, Hashable, CustomStringConvertible {
    /// The first letter.
    let first: UInt8
    /// The second letter.
    let second: UInt8

    /// The country of these letters, either case; nil if no country has them.
    public init?(_ text: some StringProtocol) {
        let letters = Array(text.utf8)
        guard letters.count == 2 else { return nil }
        self.init(letters[0], letters[1])
    }

    @inline(__always)
    init?(_ first: UInt8, _ second: UInt8) {
        let row = (first & 0xDF) &- UInt8(ascii: "A")
        let column = (second & 0xDF) &- UInt8(ascii: "A")
        guard row < 26, column < 26, CountryCode.assigned(row) >> UInt32(column) & 1 == 1 else { return nil }
        self.first = first & 0xDF
        self.second = second & 0xDF
    }

    /// The two capitals.
    public var description: String { String(decoding: [first, second], as: UTF8.self) }

    /// The second letters that are assigned after a first one: bit 0 is A.
    private static func assigned(_ row: UInt8) -> UInt32 {
        switch row {
        case 0: 0x02DF_5978  // A: DEFGILMOQRSTUWXZ
        case 1: 0x036F_7BFB  // B: ABDEFGHIJLMNOQRSTVWYZ
        case 2: 0x03F2_7DED  // C: ACDFGHIKLMNORUVWXYZ
        case 3: 0x0200_5610  // D: EJKMOZ
        case 4: 0x000E_00D4  // E: CEGHRST
        case 5: 0x0002_5700  // F: IJKMOR
        case 6: 0x015F_B9FB  // G: ABDEFGHILMNPQRSTUWY
        case 7: 0x001A_3400  // H: KMNRTU
        case 8: 0x000F_7818  // I: DELMNOQRST
        case 9: 0x0000_D010  // J: EMOP
        case 10: 0x0342_B1D0  // K: EGHIMNPRWYZ
        case 11: 0x013E_0507  // L: ABCIKRSTUVY
        case 12: 0x03FF_FCFD  // M: ACDEFGHKLMNOPQRSTUVWXYZ
        case 13: 0x0212_C975  // N: ACEFGILOPRUZ
        case 14: 0x0000_1000  // O: M
        case 15: 0x014E_3CF1  // P: AEFGHKLMNRSTWY
        case 16: 0x0000_0001  // Q: A
        case 17: 0x0054_4010  // R: EOSUW
        case 18: 0x03AE_7FDF  // S: ABCDEGHIJKLMNORSTVXYZ
        case 19: 0x026A_7EEC  // T: CDFGHJKLMNORTVWZ
        case 20: 0x0304_1041  // U: AGMSYZ
        case 21: 0x0010_2155  // V: ACEGINU
        case 22: 0x0004_0020  // W: FS
        case 24: 0x0008_0010  // Y: ET
        case 25: 0x0040_1001  // Z: AMW
        default: 0
        }
    }
}
