/**
 * So many leases of turns a session keeps. Turns whose end is never told (Envoy's access log is lost) leave theirs until they run out, and
 * a turn's cost must not grow with them. Of one too many the one that ends first goes: the session stays held until the last one ends, and the
 * turn it belonged to, should it end after all, is not counted.
 */
export const maxLeases = 64
