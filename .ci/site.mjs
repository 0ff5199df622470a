// Configures VitePress for .ci/site, which sets SITE_TAG to the tag of the pages, or to "", and
// SITE_TAGS to all tags of the site. docs/README.md decides the order of the pages.
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'

const repository = 'https://github.com/tenure-go/tenure'
const { SITE_TAG: tag = '', SITE_TAGS = '' } = process.env

// versions returns the menu of the versions. Each is a site of its own, so links have a target.
// VitePress puts the base of this site before them, and a browser removes it for "..".
function versions() {
  const tags = SITE_TAGS.split(' ').filter(Boolean)
  if (tags.length === 0) return []
  const item = (text, link) => ({ text, link: (tag ? '/..' : '') + link, target: '_self' })
  const items = [item('main', '/'), ...tags.map((t) => item(t, `/${t}/`))]
  return [{ text: tag || 'main', items }]
}

// sidebar returns a group for each heading of the index, and an item for each entry of its lists.
function sidebar(index) {
  const groups = []
  for (const line of index.split('\n')) {
    const heading = /^## (.*)/.exec(line)
    const item = /^( *)- \[(.*?)\]\((.*?)\.md\)/.exec(line)
    if (heading) groups.push({ text: heading[1], items: [] })
    if (!item) continue
    const entry = { text: item[2], link: '/' + item[3].replace(/README$/, '') }
    const above = groups.at(-1).items
    if (item[1] === '') above.push(entry)
    else (above.at(-1).items ??= []).push(entry)
  }
  return groups
}

// slug makes the same anchors as GitHub.
const slug = (heading) =>
  heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')

// links points links that leave docs to the repository, and links to a README to the index.
function links(md) {
  md.core.ruler.push('links', ({ tokens, env }) => {
    for (const link of tokens.flatMap((t) => t.children ?? [])) {
      if (link.type !== 'link_open') continue
      const href = link.attrGet('href')
      if (/^[a-z]+:|^#/.test(href)) continue
      const file = posix.join('docs', posix.dirname(env.relativePath), href)
      const within = /^docs\/.*\.md\b/.test(file)
      const outside = `${repository}/blob/${tag || 'main'}/${file}`
      link.attrSet('href', within ? href.replace('README.md', 'index.md') : outside)
    }
  })
}

export default {
  title: 'Tenure',
  base: tag ? `/${tag}/` : '/',
  description: 'Leader election on NATS JetStream, object storage, Kafka and SQL databases',
  rewrites: { 'README.md': 'index.md', 'adr/README.md': 'adr/index.md' },
  markdown: { html: false, anchor: { slugify: slug }, config: links },
  themeConfig: {
    nav: versions(),
    sidebar: sidebar(readFileSync(new URL('../README.md', import.meta.url), 'utf8')),
    socialLinks: [{ icon: 'github', link: repository }],
    search: { provider: 'local' },
    outline: [2, 3],
  },
}
