// Values come from records, which any member of an election may have written. They are shown as
// text, and characters that hide or reorder text as escapes.
import { h } from './dom.js'

// Runs of one character that hides or reorders text: control, format and bidirectional characters,
// invisible fillers, spaces other than the usual one, unassigned and private characters, and the
// fourth and each further mark over one letter.
const deceptive = /([\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}|(?<=\p{M}{3})\p{M})\1*/gu

function escape(run) {
  const code = run.codePointAt(0).toString(16)
  const count = [...run].length
  return (code.length > 4 ? `\\u{${code}}` : '\\u' + code.padStart(4, '0')) + (count > 1 ? `×${count}` : '')
}

// nodes returns a text, with its deceptive characters as marked escapes.
function nodes(text, keep = '') {
  const all = []
  let end = 0
  for (const { 0: run, 1: character, index } of text.matchAll(deceptive)) {
    if (keep.includes(character)) continue
    all.push(text.slice(end, index), h('span', { class: 'escape' }, escape(run)))
    end = index + run.length
  }
  return [...all, text.slice(end)].filter((part) => part !== '')
}

// cut leaves out the middle of a long text, because names mostly differ at their ends.
function cut(text, most) {
  const characters = [...text]
  if (characters.length <= most) return text
  const head = Math.ceil((most * 2) / 3)
  return characters.slice(0, head).join('') + '…' + characters.slice(head - most + 1).join('')
}

// plain returns a text for an attribute or for SVG.
export const plain = (text, most = 200) => cut(text.replace(deceptive, escape), most)

// short returns a text that may be cut, for a link.
export const short = (text, most = 48) => h('bdi', null, nodes(cut(text, most)))

// value returns a text. A long one is cut, and expands to the whole.
export function value(text, most = 48) {
  if ([...text].length <= most) return short(text, most)
  return h('details', { class: 'whole' },
    h('summary', { title: 'Show all' }, short(text, most)), h('bdi', null, nodes(text)))
}

// lines returns a text of several lines, for an element that keeps them.
export const lines = (text) => nodes(text, '\n')
