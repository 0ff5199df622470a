// Times and durations. The page uses the server's clock, because the reader's may be wrong.
import { h } from './dom.js'

let serverOffset = 0 // how far the server's clock is ahead of the reader's

// setNow sets the server's time from an answer.
export function setNow(text) {
  const now = Date.parse(text)
  if (!Number.isNaN(now)) serverOffset = now - Date.now()
}

export const now = () => Date.now() + serverOffset

let utc = localStorage.getItem('tenure-utc') === 'yes'

export const inUTC = () => utc

export function switchZone() {
  utc = !utc
  localStorage.setItem('tenure-utc', utc ? 'yes' : 'no')
}

// iso returns a time as 2030-01-02T03:04:05.678, in UTC or in the reader's zone.
function iso(at, inUTC) {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return ''
  const shift = inUTC ? 0 : date.getTimezoneOffset() * 60000
  return new Date(date.getTime() - shift).toISOString().slice(0, 23)
}

// stamp returns the time of day, with as much of the date as differs from today.
export function stamp(at, digits = 8) {
  const [day, time] = iso(at, utc).split('T')
  const [today] = iso(now(), utc).split('T')
  if (!time || day === today) return (time ?? '–').slice(0, digits)
  return `${day.slice(0, 4) === today.slice(0, 4) ? day.slice(5) : day} ${time.slice(0, digits)}`
}

// clock and day return the parts of a time in the zone that is shown.
export const clock = (at, digits) => iso(at, utc).slice(11, 11 + digits)
export const day = (at) => iso(at, utc).slice(0, 10)

// zoneShift returns how far the zone that is shown is ahead of UTC.
export const zoneShift = (at) => (utc ? 0 : -new Date(at).getTimezoneOffset() * 60000)

const inBothZones = (at) =>
  utc ? `${iso(at, true).replace('T', ' ')} UTC`
    : `${iso(at, true).replace('T', ' ')} UTC, ${iso(at, false).slice(11)} here`

// moment returns an element with the time of day.
export const moment = (at, digits = 12) =>
  h('time', { datetime: at, title: inBothZones(at) }, stamp(at, digits))

// ago returns an element with the time since then; tick keeps it up to date.
export const ago = (at, focus = false) =>
  h('time', { datetime: at, title: inBothZones(at), 'data-ago': true, tabindex: focus ? 0 : null,
    'data-utc': `${iso(at, true).slice(0, 19).replace('T', ' ')} UTC` }, passed(at))

const passed = (at) => age(now() - Date.parse(at))

// tick updates the elements of ago.
export function tick(root) {
  for (const time of root.querySelectorAll('time[data-ago]')) {
    const text = passed(time.dateTime)
    if (time.firstChild.nodeValue !== text) time.firstChild.nodeValue = text
  }
}

// age returns how long ago something was, in whole units: 5 s, 3 min 5 s, 2 h 4 min, 3 d 4 h.
export function age(ms) {
  const s = Math.max(0, Math.floor(ms / 1000))
  if (Number.isNaN(s)) return '–'
  if (s < 60) return `${s} s`
  if (s < 3600) return join(s, 60, 'min', 1, 's')
  if (s < 86400) return join(s, 3600, 'h', 60, 'min')
  return join(s, 86400, 'd', 3600, 'h')
}

function join(s, large, largeName, small, smallName) {
  const rest = Math.floor((s % large) / small)
  return `${Math.floor(s / large)} ${largeName}` + (rest ? ` ${rest} ${smallName}` : '')
}

// duration returns a measured time, with three digits if it is below a minute.
export function duration(ms) {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1).replace('.0', '') : Math.round(ms)} ms`
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`
  return age(ms)
}

// setting returns a configured time, without trailing zeros.
export const setting = (ms) => (ms < 60000 ? `${ms / 1000} s` : age(ms))

export const percent = (part) => `${Math.round(part * 100)} %`
