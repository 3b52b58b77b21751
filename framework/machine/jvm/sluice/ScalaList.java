package sluice;

import java.util.ArrayList;
import java.util.List;
import scala.collection.Iterator;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Scala's lists, made without its converters: they serialise, and every Java compiler takes them. */
final class ScalaList {
  private ScalaList() {}

  @SafeVarargs
  @SuppressWarnings("unchecked")
  static <T> Seq<T> of(T... items) {
    scala.collection.immutable.List<T> list = (scala.collection.immutable.List<T>) (Object) Nil$.MODULE$;
    for (int at = items.length - 1; at >= 0; at--) {
      list = new $colon$colon<>(items[at], list);
    }
    return list;
  }

  static <T> List<T> toJava(scala.collection.Seq<T> items) {
    List<T> list = new ArrayList<>();
    for (Iterator<T> each = items.iterator(); each.hasNext(); ) {
      list.add(each.next());
    }
    return list;
  }
}
