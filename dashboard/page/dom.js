// Elements, and updates of a tree in place. Nothing here takes markup: values become text nodes or
// attributes.

const namespace = 'http://www.w3.org/2000/svg'

// h makes an HTML element. Attributes that are null or false are left out.
export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children)

// svg makes an SVG element.
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS(namespace, tag), attributes, children)

// head makes the head of a table. A column is a text, or an array of a text, a class and a title.
export const head = (...columns) => h('thead', null, h('tr', null, columns.map((column) => {
  const [text, kind = null, title = null] = [column].flat()
  return h('th', { scope: 'col', class: kind, title }, text)
})))

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false))
  return element
}

// update makes the children of an element equal to new ones. Elements that stay keep the focus, the
// selection, and whether they are expanded.
export function update(element, ...children) {
  const focused = document.activeElement
  const wanted = document.createDocumentFragment()
  wanted.append(...children.flat(3).filter(Boolean))
  updateChildren(element, wanted)
  if (focused !== document.activeElement && element.contains(focused)) {
    focused.focus({ preventScroll: true }) // it has moved
  }
}

function updateChildren(from, to) {
  const keyed = new Map()
  const wanted = new Set([...to.children].map((c) => c.dataset.key))
  for (const child of [...from.children]) {
    const key = child.dataset.key
    if (key === undefined) continue
    if (wanted.has(key)) keyed.set(key, child)
    else child.remove()
  }
  let at = from.firstChild
  for (const next of [...to.childNodes]) {
    const key = next.dataset?.key
    const same = key === undefined ? at : keyed.get(key)
    if (!same || !alike(same, next)) {
      from.insertBefore(next, at)
      continue
    }
    if (same === at) at = at.nextSibling
    else from.insertBefore(same, at)
    updateNode(same, next)
  }
  while (at) {
    const rest = at
    at = at.nextSibling
    rest.remove()
  }
}

const alike = (a, b) => a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key

function updateNode(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue
    return
  }
  for (const { name } of [...from.attributes]) {
    // The reader opens and closes details elements.
    if (!to.hasAttribute(name) && name !== 'open') from.removeAttribute(name)
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value)
  }
  updateChildren(from, to)
}
