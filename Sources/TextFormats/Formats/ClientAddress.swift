/// The address of a client, with or without a port, as Apache and HAProxy write it.
enum ClientAddress {
    /// Writes the address, and the port if there is one. The last colon counts, because an IPv6 address has
    /// others.
    static func write(_ client: Bytes, into writer: inout RecordWriter) {
        if let colon = client.lastIndex(of: UInt8(ascii: ":")), client.dropping(colon + 1).isDigits {
            writer.text("client", client.prefix(colon))
            writer.number("port", client.dropping(colon + 1))
        } else {
            writer.present("client", client)
        }
    }
}
