package sluice;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;

/** Spark's error conditions in the words of a bad row: what is wrong with the value, without advice for people who can change the SQL. */
final class Conditions {
  private static final Map<String, String> WORDS =
      Map.ofEntries(
          Map.entry("DIVIDE_BY_ZERO", "division by zero"),
          Map.entry("REMAINDER_BY_ZERO", "division by zero"),
          Map.entry("INTERVAL_DIVIDED_BY_ZERO", "division by zero"),
          Map.entry("ARITHMETIC_OVERFLOW", "{message}"),
          Map.entry("BINARY_ARITHMETIC_OVERFLOW", "{value1} {symbol} {value2} does not fit its type"),
          Map.entry("CAST_INVALID_INPUT", "{expression} is not a {targetType}"),
          Map.entry("CAST_OVERFLOW", "{value} does not fit {targetType}"),
          Map.entry("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", "{value} does not fit decimal({precision},{scale})"),
          Map.entry("NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION", "{originalValue} does not fit decimal({precision},{scale})"),
          Map.entry("INVALID_ARRAY_INDEX", "an array of {arraySize} has no item {indexValue}"),
          Map.entry("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "an array of {arraySize} has no item {indexValue}"),
          Map.entry("INVALID_INDEX_OF_ZERO", "items count from 1"),
          Map.entry("DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION", "{rangeMessage}"),
          Map.entry("DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION", "{rangeMessage}"),
          Map.entry("CANNOT_PARSE_TIMESTAMP", "{message}"),
          Map.entry("MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION", "{badRecord} cannot be parsed"),
          Map.entry("INVALID_VARIANT_CAST", "{value} is not a {dataType}"),
          Map.entry("USER_RAISED_EXCEPTION", "{errorMessage}"));
  private static final Pattern AROUND = Pattern.compile("^\\[[A-Z0-9_.]+\\] |(\\. (Use|If necessary|To|Please|Try|Correct)\\b| SQLSTATE:|\\R).*$", Pattern.DOTALL);
  private static final Pattern QUOTED_TYPE = Pattern.compile("\"([A-Z][A-Z0-9_(),<>: ]*)\"");
  private static final Pattern NUMBER = Pattern.compile("-?[0-9]+[LSY]");
  private static final int LONGEST_VALUE = 60;

  private Conditions() {}

  static String words(SparkThrowable error) {
    String words = WORDS.get(error.getCondition());
    if (words == null) {
      return plain(((Throwable) error).getMessage());
    }
    for (Map.Entry<String, String> parameter : error.getMessageParameters().entrySet()) {
      words = words.replace("{" + parameter.getKey() + "}", BadMessage.cut(type(parameter.getValue()), LONGEST_VALUE));
    }
    return words.replaceFirst(" is not a int$", " is not an integer").replaceFirst(" is not a (?=(interval|array)[^']*$)", " is not an ");
  }

  /** The first sentence of Spark's own message. */
  private static String plain(String message) {
    String text = AROUND.matcher(message == null ? "" : message).replaceAll("").strip();
    text = text.endsWith(".") ? text.substring(0, text.length() - 1) : text;
    boolean sentence = text.length() > 1 && Character.isUpperCase(text.charAt(0)) && Character.isLowerCase(text.charAt(1));
    return sentence ? text.substring(0, 1).toLowerCase(Locale.ROOT) + text.substring(1) : text;
  }

  /** Spark writes a type in double quotes and capitals, and a number as SQL does: 5L. */
  private static String type(String parameter) {
    if (NUMBER.matcher(parameter).matches()) {
      return parameter.substring(0, parameter.length() - 1);
    }
    return QUOTED_TYPE.matcher(parameter).matches() ? parameter.substring(1, parameter.length() - 1).toLowerCase(Locale.ROOT) : parameter;
  }
}
