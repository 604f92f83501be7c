public import EventLoops
public import TimeZones

/// The times of text logs.
///
/// The first bytes of a text decide which form it must have. So a text is read once, and no list of formats
/// is tried one after the other.
public enum TextTime {
    /// The time that a text says, in one of these forms:
    ///
    /// * `2026-11-29 10:00:00.123 Z` and its variants: `T` or a blank, `/` or `.` between the parts of the
    ///   date, a comma before the fraction, an hour of one digit, an offset with or without a colon, `UTC`, a
    ///   zone's letters (taken as `zone`'s)
    /// * `29/Nov/2026:10:00:00 +0000` (access logs), with a fraction or without an offset (HAProxy)
    /// * `Sun Nov 29 10:00:00.123456 2026` (ctime, Apache)
    /// * `Nov 29 10:00:00` (syslog), with a fraction: of the year that is nearest to `now`
    /// * `29 Nov 2026 10:00:00.123` (Redis), `29-Nov-2026 10:00:00.123` (Tomcat)
    /// * `1129 10:00:00.123456` (klog): of the year that is nearest to `now`
    /// * `20261129T100000Z`, `20261129 10:00:00.123456` (glog), `261129 10:00:00` (old MySQL)
    /// * `Sun, 29 Nov 2026 10:00:00 GMT` (RFC 1123), `Sun 2026-11-29 10:00:00 CET` (journalctl)
    /// * `Nov 29, 2026 10:00:00 AM` (java.util.logging)
    /// * `10:00:00.123`: of the last day on which it was, or today if it is within the next hour
    ///
    /// Letters such as `CST` name several zones, so a record that may come from another machine has no time
    /// by them: this function refuses them. A text log of this machine is written in its zone, so the formats
    /// take letters as `zone`'s; if that is UTC, as the zone that usually has them.
    ///
    /// - Returns: nil for anything else.
    public static func parse(
        _ text: UnsafeBufferPointer<UInt8>, zone: TimeZoneRules, now: Timestamp
    ) -> Timestamp? {
        guard let start = text.baseAddress else { return nil }
        let bytes = Bytes(start, text.count)
        return parse(bytes, zone: zone, isUTC: zone.isAlwaysUTC, now: now, takesLetters: false)
    }

    /// Whether a text has the form of a time, whatever zone its letters name. Used to find the beginnings of
    /// records, so it must not depend on the zone or the time of day.
    static func isTime(_ text: Bytes) -> Bool {
        guard text.count >= 8, text.count <= 48 else { return false }
        var reader = TimeReader(text)
        return reader.readForm()
    }

    /// Reads a text and computes its instant. A text of fewer than 8 or more than 48 bytes is not a time: the
    /// bound keeps the work small for long fields.
    ///
    /// - Parameter takesLetters: whether the text is of a log of this machine, in which letters of zones
    ///   count.
    static func parse(
        _ text: Bytes, zone: TimeZoneRules, isUTC: Bool, now: Timestamp, takesLetters: Bool
    ) -> Timestamp? {
        guard text.count >= 8, text.count <= 48 else { return nil }
        var reader = TimeReader(text)
        guard reader.readForm() else { return nil }
        var parts = reader.parts
        if parts.hasLetters {
            // If the zone is UTC, then because the machine's clock is, while the program's zone is another
            // one: only letters that usually name one zone say which.
            guard takesLetters, !isUTC || parts.takeUsualOffset() else { return nil }
        }
        return parts.time(zone: zone, isUTC: isUTC, now: now)
    }
}
