/**
 * The URL of each server of a URL with one host or several, `redis://user:password@host:port,host:port/0`. What is no
 * URL comes back as it is.
 */
export const urlsOfHosts = (text: string): readonly string[] => {
  const [, before = '', hosts = text, after = ''] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? []
  return hosts.split(',').map((host) => `${before}${host}${after}`)
}
