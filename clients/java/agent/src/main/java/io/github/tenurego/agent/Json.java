package io.github.tenurego.agent;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes the JSON of the agent: a library would be the only dependency. */
final class Json {
  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  /** Reads an object. Numbers are Long or Double. An empty text is an empty object. */
  @SuppressWarnings("unchecked")
  static Map<String, Object> read(String text) throws IOException {
    if (text.isBlank()) {
      return Map.of();
    }
    var json = new Json(text);
    try {
      if (json.value(0) instanceof Map<?, ?> object && json.next() == 0) {
        return (Map<String, Object>) object;
      }
    } catch (StringIndexOutOfBoundsException | IllegalArgumentException e) {
      throw new IOException("the agent's answer is malformed: " + text, e);
    }
    throw new IOException("the agent's answer is no JSON object: " + text);
  }

  /** Returns the next character that is no space, or 0 at the end. */
  private char next() {
    while (at < text.length() && text.charAt(at) <= ' ') {
      at++;
    }
    return at < text.length() ? text.charAt(at) : 0;
  }

  private void expect(char c) {
    if (next() != c) {
      throw new IllegalArgumentException("no " + c + " at " + at);
    }
    at++;
  }

  private boolean skips(char c) {
    boolean there = next() == c;
    if (there) {
      at++;
    }
    return there;
  }

  private Object value(int depth) {
    if (depth > 20) {
      throw new IllegalArgumentException("too deep");
    }
    switch (next()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      default:
        int from = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
          at++;
        }
        return word(text.substring(from, at));
    }
  }

  private static Object word(String word) {
    return switch (word) {
      case "true" -> true;
      case "false" -> false;
      case "null" -> null;
      default -> word.matches("-?[0-9]+") ? (Object) Long.valueOf(word) : Double.valueOf(word);
    };
  }

  private Map<String, Object> object(int depth) {
    Map<String, Object> object = new LinkedHashMap<>();
    expect('{');
    if (skips('}')) {
      return object;
    }
    do {
      next();
      String name = string();
      expect(':');
      object.put(name, value(depth + 1));
    } while (skips(','));
    expect('}');
    return object;
  }

  private List<Object> array(int depth) {
    List<Object> array = new ArrayList<>();
    expect('[');
    if (skips(']')) {
      return array;
    }
    do {
      array.add(value(depth + 1));
    } while (skips(','));
    expect(']');
    return array;
  }

  private String string() {
    expect('"');
    var s = new StringBuilder();
    for (char c; (c = text.charAt(at++)) != '"';) {
      if (c != '\\') {
        s.append(c);
        continue;
      }
      char escaped = text.charAt(at++);
      int plain = "bfnrt".indexOf(escaped);
      if (escaped == 'u') {
        s.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
        at += 4;
      } else {
        s.append(plain < 0 ? escaped : "\b\f\n\r\t".charAt(plain));
      }
    }
    return s.toString();
  }

  /** Writes a string, a number, a boolean, or a map of these. */
  static String write(Object value) {
    var s = new StringBuilder();
    write(s, value);
    return s.toString();
  }

  private static void write(StringBuilder s, Object value) {
    if (value instanceof Map<?, ?> object) {
      String separator = "{";
      for (var e : object.entrySet()) {
        s.append(separator);
        write(s, e.getKey());
        s.append(':');
        write(s, e.getValue());
        separator = ",";
      }
      s.append(object.isEmpty() ? "{}" : "}");
    } else if (value instanceof String text) {
      s.append('"');
      text.chars().forEach(c -> {
        if (c < ' ' || c == '"' || c == '\\') {
          s.append(String.format("\\u%04x", c));
        } else {
          s.append((char) c);
        }
      });
      s.append('"');
    } else {
      s.append(value);
    }
  }
}
